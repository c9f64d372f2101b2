"""The window rule of the encoder, as the C library applies it: content tokens c[n] of a text become windows

    <s> c[j stride] ... c[j stride + length - 3] </s>        j = 0, 1, ... until a window reaches the end

A text's vector is the mean of its windows' vectors weighted by their content tokens, and a window's vector is the mean
of its content tokens' states: sum over windows of the sum of states, divided by the number of summed states.
"""
import numpy as np

BEGIN, PAD, END, UNKNOWN, MASK = range(5)
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def batch(pieces):
    """Content pieces (arrays of ids) as padded (ids int64[n][longest], attention mask, content mask)."""
    longest = max(len(piece) for piece in pieces) + 2
    ids = np.full((len(pieces), longest), PAD, np.int64)
    content = np.zeros((len(pieces), longest), np.float32)
    for row, piece in enumerate(pieces):
        ids[row, 0], ids[row, len(piece) + 1] = BEGIN, END
        ids[row, 1:len(piece) + 1] = piece
        content[row, 1:len(piece) + 1] = 1
    return ids, (ids != PAD).astype(np.int64), content
