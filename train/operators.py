"""The operators that collect.py measures: subgraphs of ResNet-50, MobileNetV2, EfficientNet, ViT, BERT, GPT-2 and OPT
(f32, batch 1), and the same families at other shapes.

Each family is a function of its shape that returns the tensors of a primitive function, inputs first and the output
last. An operator is named by its family and its arguments, `dense_128_768_3072_bias_gelu`, so that the name alone says
what was measured; the older ones keep the short names that their folders have. Extents are chosen such that few
operators of a family are near-duplicates (every extent within a factor of two), and such that a bad schedule still runs
in less than a few seconds.
"""
from tvm import te, tirx, topi


def tensor(name, *shape):
    return te.placeholder(shape, name=name, dtype="float32")


def constant(value):
    return tirx.const(value, "float32")


def gelu(x):
    """x (1 + erf(x / sqrt 2)) / 2, elementwise."""
    half, root = constant(0.5), constant(0.70710678)
    return te.compute(x.shape, lambda *i: x(*i) * (te.erf(x(*i) * root) * half + half), name="gelu")


def dense(m, n, k, epilogue="", transposed=False):
    """A[m,k] x B[k,n] (B[n,k] if transposed), then optionally "bias", "bias relu", "bias gelu", "bias add" (residual)."""
    a, b = tensor("A", m, k), tensor("B", *((n, k) if transposed else (k, n)))
    axis = te.reduce_axis((0, k), "k")
    out = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * (b[j, axis] if transposed else b[axis, j]), axis=axis),
                     name="matmul")
    tensors = [a, b]
    if "bias" in epilogue:
        bias, product = tensor("bias", n), out
        out = te.compute((m, n), lambda i, j: product[i, j] + bias[j], name="bias_add")
        tensors.append(bias)
    biased = out
    if "relu" in epilogue:
        out = te.compute((m, n), lambda i, j: te.max(biased[i, j], constant(0)), name="relu")
    if "gelu" in epilogue:
        out = gelu(biased)
    if "add" in epilogue.replace("bias", "").split():
        residual = tensor("residual", m, n)
        out = te.compute((m, n), lambda i, j: biased[i, j] + residual[i, j], name="residual_add")
        tensors.append(residual)
    return tensors + [out]


def batch_matmul(batch, m, n, k, transposed=True):
    """A[batch,m,k] x B[batch,n,k], or B[batch,k,n] if not transposed."""
    a, b = tensor("A", batch, m, k), tensor("B", batch, *((n, k) if transposed else (k, n)))
    axis = te.reduce_axis((0, k), "k")
    return [a, b, te.compute(
        (batch, m, n),
        lambda x, i, j: te.sum(a[x, i, axis] * (b[x, j, axis] if transposed else b[x, axis, j]), axis=axis),
        name="batch_matmul")]


def conv2d(channels, size, filters, kernel, stride=1, relu=False):
    data, weight = tensor("data", 1, channels, size, size), tensor("weight", filters, channels, kernel, kernel)
    out = topi.nn.conv2d_nchw(data, weight, stride, kernel // 2, 1)
    return [data, weight, topi.nn.relu(out) if relu else out]


def conv2d_add(channels, size, filters, kernel):
    """Convolution, bias, residual and relu: the end of a ResNet block."""
    data, weight = tensor("data", 1, channels, size, size), tensor("weight", filters, channels, kernel, kernel)
    bias, residual = tensor("bias", 1, filters, 1, 1), tensor("residual", 1, filters, size, size)
    out = topi.nn.conv2d_nchw(data, weight, 1, kernel // 2, 1)
    return [data, weight, bias, residual, topi.nn.relu(topi.add(topi.add(out, bias), residual))]


def conv2d_nhwc(channels, size, filters, kernel, stride=1, relu=False):
    data, weight = tensor("data", 1, size, size, channels), tensor("weight", kernel, kernel, channels, filters)
    out = topi.nn.conv2d_nhwc(data, weight, stride, kernel // 2, 1)
    return [data, weight, topi.nn.relu(out) if relu else out]


def depthwise(channels, size, kernel, stride=1, relu6=False):
    data, weight = tensor("data", 1, channels, size, size), tensor("weight", channels, 1, kernel, kernel)
    out = topi.nn.depthwise_conv2d_nchw(data, weight, stride, kernel // 2, 1)
    return [data, weight, topi.clip(out, 0.0, 6.0) if relu6 else out]


def softmax(rows, columns):
    a = tensor("A", rows, columns)
    return [a, topi.nn.softmax(a, axis=1)]


def layer_norm(rows, columns):
    a, gamma, beta = tensor("A", rows, columns), tensor("gamma", columns), tensor("beta", columns)
    return [a, gamma, beta, topi.nn.layer_norm(a, gamma, beta, [1], 1e-5)]


def rms_norm(rows, columns):
    a, gamma = tensor("A", rows, columns), tensor("gamma", columns)
    return [a, gamma, topi.nn.rms_norm(a, gamma, [1], 1e-5)]


def pool(channels, size, kernel, stride, kind="max"):
    data, pad = tensor("data", 1, channels, size, size), kernel // 2
    return [data, topi.nn.pool2d(data, [kernel] * 2, [stride] * 2, [1, 1], [pad] * 4, kind)]


def global_average_pool(channels, size):
    data = tensor("data", 1, channels, size, size)
    return [data, topi.nn.adaptive_pool(data, (1, 1), "avg")]


def row_sum(rows, columns):
    a = tensor("A", rows, columns)
    return [a, topi.sum(a, axis=1)]


def column_sum(rows, columns):
    a = tensor("A", rows, columns)
    return [a, topi.sum(a, axis=0)]


def row_max(rows, columns):
    a = tensor("A", rows, columns)
    return [a, topi.max(a, axis=1)]


def square_norm(batch, rows, columns):
    """Sum of squares of each matrix of a batch."""
    a = tensor("A", batch, rows, columns)
    return [a, topi.sum(topi.multiply(a, a), axis=[1, 2])]


def bias_gelu(rows, columns):
    a, bias = tensor("A", rows, columns), tensor("bias", columns)
    return [a, bias, gelu(topi.add(a, bias))]


def add_relu(channels, size):
    """Residual sum and relu of two feature maps."""
    a, b = tensor("A", 1, channels, size, size), tensor("B", 1, channels, size, size)
    return [a, b, topi.nn.relu(topi.add(a, b))]


def scale_shift(channels, size):
    """Batch normalisation at inference and swish (EfficientNet)."""
    a = tensor("A", 1, channels, size, size)
    scale, shift = tensor("scale", 1, channels, 1, 1), tensor("shift", 1, channels, 1, 1)
    out = topi.add(topi.multiply(a, scale), shift)
    return [a, scale, shift, topi.multiply(out, topi.sigmoid(out))]


def transpose_add(rows, columns):
    a, b = tensor("A", columns, rows), tensor("B", rows, columns)
    return [a, b, te.compute((rows, columns), lambda i, j: a[j, i] + b[i, j], name="transpose_add")]


# Named before the rule above: their folders bear these names.
NAMED = {
    "conv3x3_96": (conv2d, 96, 40, 96, 3, 1, True),
    "dense_384": (dense, 384, 768, 768, "bias"),
    "conv1x1_192": (conv2d, 192, 28, 384, 1),
    "nhwc_3x3_80": (conv2d_nhwc, 80, 36, 160, 3, 1, True),
    "bmm_20_96_qk": (batch_matmul, 20, 96, 96, 80),
    "dense_196_gelu": (dense, 196, 1536, 384, "bias gelu"),
    "depthwise_144": (depthwise, 144, 56, 3),
    "softmax_2048_384": (softmax, 2048, 384),
    "conv3x3s2_48": (conv2d, 48, 80, 128, 3, 2),
    "layer_norm_256_512": (layer_norm, 256, 512),
    "pool_192": (pool, 192, 70, 3, 2),
    "matvec_8_1536": (dense, 8, 1536, 1024, "", True),
    "bmm_6_196_av": (batch_matmul, 6, 196, 64, 196, False),
    "gap_1280": (global_average_pool, 1280, 10),
}

SHAPES = {
    dense: [
        (64, 768, 768, "bias add"), (128, 3072, 768, "bias gelu"), (16, 768, 3072, "bias"), (197, 192, 192, "bias"),
        (197, 768, 192, "bias gelu"), (50, 384, 1536, "bias add"), (1, 1000, 1280, "bias"), (1, 4096, 1024, ""),
        (4, 768, 768, "bias"), (256, 256, 1024, ""), (1024, 128, 128, "bias relu"), (512, 64, 512, ""),
        (32, 2048, 512, "bias relu"), (8, 3072, 768, "bias gelu"), (768, 768, 64, ""), (2048, 32, 256, "bias"),
        (96, 96, 4096, ""), (1, 512, 2048, "bias", True), (64, 1024, 256, "", True), (300, 300, 300, "", True),
        (16, 1536, 384, "bias relu", True), (128, 128, 1024, "bias", True),
    ],
    batch_matmul: [
        (12, 64, 64, 64), (12, 197, 197, 64), (3, 197, 64, 197, False), (16, 32, 64, 32, False), (32, 128, 128, 32),
        (8, 256, 64, 256, False), (12, 1, 128, 64), (12, 1, 64, 128, False), (25, 48, 48, 64), (4, 512, 512, 64),
        (2, 384, 96, 384, False), (64, 16, 16, 128), (48, 49, 32, 49, False), (96, 49, 49, 32), (6, 100, 300, 200),
    ],
    conv2d: [
        (3, 112, 32, 3, 2, True), (3, 96, 48, 7, 2), (64, 28, 64, 3), (128, 14, 256, 3, 2), (256, 14, 1024, 1),
        (512, 7, 2048, 1, 1, True), (64, 56, 256, 1), (32, 112, 16, 1), (24, 56, 144, 1, 1, True), (320, 7, 1280, 1),
        (192, 14, 32, 1), (96, 28, 24, 1), (32, 64, 32, 5), (16, 96, 32, 3, 1, True), (160, 12, 160, 3),
        (8, 128, 8, 3), (48, 20, 192, 5, 2), (256, 28, 128, 1, 2), (512, 10, 64, 3), (40, 24, 40, 7),
    ],
    conv2d_add: [(64, 28, 64, 3), (64, 28, 256, 1), (256, 7, 512, 1), (128, 14, 128, 3), (24, 56, 24, 1)],
    conv2d_nhwc: [
        (3, 112, 24, 3, 2), (64, 28, 64, 3, 1, True), (32, 56, 192, 1), (256, 14, 64, 1), (512, 7, 512, 1, 1, True),
        (128, 14, 128, 3), (16, 80, 32, 5, 2), (320, 7, 1280, 1), (192, 10, 96, 3), (24, 48, 24, 3, 1, True),
    ],
    depthwise: [
        (32, 112, 3, 1, True), (96, 56, 3, 2, True), (192, 28, 3), (576, 14, 3), (960, 7, 3, 1, True), (240, 28, 5, 2),
        (672, 14, 5), (48, 40, 7),
    ],
    softmax: [(1536, 128), (64, 1000), (12, 4096), (4096, 64), (2364, 197), (1, 30000), (300, 512)],
    layer_norm: [(197, 192), (16, 768), (1024, 256), (8, 4096), (50, 384), (3136, 96)],
    rms_norm: [(32, 2048), (512, 512), (4, 4096)],
    pool: [
        (64, 112, 3, 2), (256, 14, 3, 1), (32, 48, 2, 2), (480, 28, 3, 1, "avg"), (128, 56, 2, 2, "avg"),
        (16, 128, 5, 1), (832, 7, 3, 1),
    ],
    global_average_pool: [(512, 7), (96, 56), (1280, 7), (24, 112)],
    row_sum: [(64, 8192), (4096, 128), (8, 65536)],
    column_sum: [(1024, 512), (8192, 32)],
    row_max: [(512, 1024), (20, 20000)],
    square_norm: [(16, 128, 128), (128, 49, 64)],
    bias_gelu: [(128, 3072), (197, 768), (16, 1536)],
    add_relu: [(256, 56), (512, 14)],
    scale_shift: [(96, 56), (672, 14), (32, 112)],
    transpose_add: [(768, 768), (128, 3072), (2048, 96)],
}


def title(family, shape):
    """family_shape: numbers and words joined by underscores, a flag by its name."""
    flags = family.__code__.co_varnames
    words = [("" if value else "un") + flags[i] if isinstance(value, bool) else str(value).replace(" ", "_")
             for i, value in enumerate(shape) if value != ""]
    return "_".join([family.__name__, *words])


OPERATORS = {**NAMED, **{title(family, shape): (family, *shape) for family, shapes in SHAPES.items()
                         for shape in shapes}}
