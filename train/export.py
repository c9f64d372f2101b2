"""Writes a model bundle (weights/FORMAT.md): the whole, or one whose encoder alone is worth reading."""
import contextlib
import json
import os
import pathlib
import shutil
import tempfile

import numpy as np
import xgboost
from safetensors.numpy import save


@contextlib.contextmanager
def replacing(directory):
    """A folder for a new bundle, which takes the place of the one in the directory, file by file and the manifest last,
    if the block ends well; otherwise the directory is as it was. The folder lies within: on the same file system."""
    directory = pathlib.Path(directory)
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    staged = None
    try:
        staged = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=directory))
        yield staged
        names = sorted((path.name for path in staged.iterdir()), key=lambda name: name == "model.json")
        for name in names:  # before anything moves
            if (directory / name).is_dir():
                raise IsADirectoryError(f"{directory / name} is a folder where a file of the bundle should be")
        for name in names:
            os.replace(staged / name, directory / name)
        if "score_network.safetensors" not in names:
            (directory / "score_network.safetensors").unlink(missing_ok=True)
    finally:
        if staged:
            shutil.rmtree(staged, ignore_errors=True)
        if made and not any(directory.iterdir()):
            directory.rmdir()


def put_score_network(directory, manifest, network):
    """Writes the network, or removes the one that is there, and tells the manifest. A bundle with one has format
    version 2, so that a library which would leave the network out refuses it. The file names the features that the
    network reads, so that it does not go with a manifest that lists others."""
    path = pathlib.Path(directory) / "score_network.safetensors"
    manifest["format_version"] = 2 if network else 1
    manifest.pop("score_network", None)
    path.unlink(missing_ok=True)
    if network:
        manifest["score_network"] = True
        names = "".join(name + "\n" for name in manifest["features"]).encode()
        path.write_bytes(save({**network.tensors(), "features": np.frombuffer(names, np.uint8)}))


def write(directory, tokenizer, encoder, window, kinds, projection, transition, features, booster, network, training):
    """tokenizer: tokenizers.Tokenizer; encoder: RobertaModel; window: (length, stride); projection: [latent][hidden];
    transition: numpy tensors; network: score_network.Network or None."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    latent = int(transition["kind_embedding"].shape[1])
    manifest = {"format": "foreloop-model", "format_version": 1, "text_rule": 1, "latent_size": latent,
                "window": {"length": window[0], "stride": window[1]},
                "pooling": {"projection": True, "normalize": True}, "actions": kinds, "activation": "relu",
                "features": list(features), "training": training}
    put_score_network(directory, manifest, network)
    (directory / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = encoder.config.to_dict()
    keep = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "hidden_act", "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id",
            "bos_token_id", "eos_token_id", "hidden_dropout_prob", "attention_probs_dropout_prob")
    (directory / "config.json").write_text(json.dumps(
        {"architectures": ["RobertaModel"], **{key: settings[key] for key in keep},
         "position_embedding_type": "absolute"}, indent=1) + "\n")
    weights = {name: tensor.detach().numpy().astype(np.float16) for name, tensor in encoder.state_dict().items()
               if tensor.is_floating_point()}
    weights["pooling.weight"] = projection.astype(np.float16)
    weights["pooling.bias"] = np.zeros(latent, np.float16)
    (directory / "encoder.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    (directory / "transition.safetensors").write_bytes(save(transition))
    booster.save_model(str(directory / "ranker.json"))


def write_encoder(directory, tokenizer, encoder, window):
    """A bundle that gives the encoder's states through the C library, unprojected, before there is a transition and a
    ranker: theirs are of one kind of action and one constant feature."""
    size = encoder.config.hidden_size
    transition = {"kind_embedding": np.zeros((1, size), np.float32), "normal": np.eye(1, size, dtype=np.float32),
                  "beta": np.zeros(1, np.float32)}
    booster = xgboost.train({"max_depth": 1}, xgboost.DMatrix(np.zeros((2, 1)), np.zeros(2), feature_names=["length"]), 1)
    write(directory, tokenizer, encoder, window, [{"kind": "none", "slots": []}], np.eye(size, dtype=np.float32),
          transition, ["length"], booster, None, {})
