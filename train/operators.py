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

# Measured with half as many candidates, half of them chosen by the bundle's own search. But for the depthwise ones no two of
# them, and none of them and one of the above, are near-duplicates.
MORE_SHAPES = {
    dense: [
        (400, 24, 2048, "bias gelu"), (96, 256, 4096, "bias relu", True), (384, 3072, 32, "bias add"),
        (144, 4096, 96, "bias relu"), (64, 24, 2560, "bias add"), (96, 1280, 32, "bias add", True),
        (16, 2304, 4096, "", True), (320, 10, 2048, "", True), (400, 128, 2560, ""),
        (32, 4096, 64, "bias relu", True), (512, 96, 48, "", True), (16, 512, 512, ""), (5, 1024, 3072, "bias add"),
        (49, 1152, 100, ""), (1024, 2048, 16, "bias add"), (5, 256, 3072, "bias relu"), (196, 24, 1536, "bias add"),
        (197, 80, 192, ""), (3136, 80, 32, "bias gelu", True), (577, 512, 147, "bias", True), (1024, 160, 16, "bias"),
        (1024, 256, 48, ""), (100, 4096, 16, "bias add"), (96, 100, 256, ""), (2048, 96, 320, "bias relu"),
        (3136, 16, 1024, "bias add"), (784, 768, 16, ""), (3136, 1024, 27, "bias gelu", True),
        (64, 384, 96, "", True), (577, 24, 1000, "bias"), (77, 320, 288, ""), (2048, 400, 192, ""),
        (32, 128, 1024, "bias gelu"), (1500, 10, 384, "bias add", True),
    ],
    batch_matmul: [
        (16, 32, 144, 96), (128, 7, 144, 16), (96, 32, 96, 196, False), (128, 10, 100, 48), (32, 7, 196, 128),
        (10, 320, 64, 40), (96, 100, 49, 32), (1, 128, 196, 160), (4, 196, 196, 48), (40, 320, 49, 128),
        (1, 100, 512, 48), (3, 32, 320, 128), (96, 100, 7, 128), (5, 49, 49, 196), (3, 512, 96, 32),
        (48, 16, 320, 32), (12, 512, 10, 256), (32, 512, 10, 64), (32, 16, 320, 196), (48, 256, 49, 24, False),
        (5, 64, 320, 48), (24, 64, 512, 96), (12, 64, 196, 16, False), (96, 128, 49, 72, False),
    ],
    conv2d: [
        (384, 112, 12, 1, 2), (64, 17, 960, 1), (768, 10, 64, 1), (384, 40, 20, 3), (16, 80, 384, 3, 2, True),
        (16, 20, 1152, 1, 1, True), (512, 56, 8, 3), (16, 52, 8, 3), (160, 38, 56, 7, 2), (288, 28, 12, 7),
        (448, 24, 40, 1, 1, True), (1280, 19, 80, 3, 2), (112, 13, 56, 7, 2, True), (576, 64, 32, 1),
        (24, 128, 512, 1, 2, True), (12, 7, 112, 7, 1, True), (576, 10, 12, 7, 1, True), (288, 20, 8, 3, 2, True),
        (56, 17, 448, 3), (128, 64, 12, 3), (256, 75, 56, 1, 1, True), (288, 8, 128, 5, 2), (576, 14, 20, 3, 1, True),
        (576, 13, 576, 1), (80, 96, 8, 1), (1024, 28, 8, 1), (56, 52, 8, 3), (20, 9, 640, 5, 2), (48, 8, 72, 7),
        (12, 35, 40, 5), (24, 20, 8, 7, 1, True), (3, 8, 1280, 3), (48, 14, 640, 7, 2), (128, 16, 16, 5, 1, True),
        (96, 80, 32, 1), (3, 28, 1280, 1, 1, True),
    ],
    conv2d_add: [
        (12, 38, 128, 7), (1024, 17, 24, 1), (8, 17, 1024, 7), (3, 96, 160, 1), (32, 48, 1152, 1), (640, 128, 8, 1),
        (8, 24, 448, 1), (1152, 7, 192, 3), (56, 28, 96, 1),
    ],
    conv2d_nhwc: [
        (768, 7, 80, 1), (64, 64, 8, 1), (64, 20, 448, 3), (96, 96, 8, 3), (512, 30, 160, 1, 2), (576, 14, 40, 5, 2),
        (16, 75, 448, 3, 2), (40, 12, 960, 3), (1280, 13, 256, 1, 1, True), (12, 16, 20, 7), (72, 14, 24, 3),
        (576, 16, 64, 1), (640, 7, 128, 5, 1, True), (8, 64, 80, 1, 1, True), (288, 9, 240, 3, 2),
        (576, 19, 512, 1, 1, True), (80, 12, 384, 1), (72, 26, 8, 3), (40, 16, 112, 7), (32, 17, 640, 1),
        (72, 24, 8, 5, 2), (16, 7, 448, 3), (20, 52, 80, 1), (64, 112, 20, 1), (12, 40, 1024, 1), (112, 19, 32, 7),
    ],
    depthwise: [
        (1152, 7, 3), (1152, 7, 5), (480, 14, 5), (288, 14, 3, 1, True), (40, 28, 5), (16, 112, 3, 2, True),
        (24, 75, 5, 2), (32, 64, 3), (768, 14, 7), (96, 56, 7), (384, 28, 3, 2), (512, 14, 3), (1024, 7, 3, 1, True),
        (64, 112, 3), (192, 80, 3), (256, 28, 3), (20, 40, 5, 2, True), (240, 14, 3),
    ],
    softmax: [
        (128, 5000), (20, 50257), (49, 3000), (64, 320), (400, 3000), (512, 100), (20, 1280), (768, 1024),
        (10, 10000), (768, 32), (4, 8192), (8192, 192),
    ],
    layer_norm: [
        (1536, 1024), (768, 32), (400, 1280), (3000, 384), (20, 8192), (100, 8192), (49, 8192), (768, 77),
        (256, 4096),
    ],
    rms_norm: [(3000, 32), (8192, 192), (400, 160), (8192, 32)],
    pool: [
        (24, 28, 7, 2, "avg"), (384, 10, 7, 1), (1024, 20, 7, 2, "avg"), (384, 112, 2, 3, "avg"),
        (64, 80, 5, 3, "avg"), (1024, 56, 3, 2, "avg"), (320, 8, 7, 3, "avg"), (1024, 7, 7, 3), (96, 20, 7, 2),
        (96, 128, 3, 3, "avg"), (64, 150, 2, 1), (192, 64, 7, 3), (16, 150, 2, 2), (24, 112, 7, 3, "avg"),
    ],
    global_average_pool: [(768, 28), (128, 20), (32, 40)],
    row_sum: [(256, 128), (1000, 48), (64, 1536), (128, 384)],
    column_sum: [(2048, 16), (256, 1000)],
    row_max: [(2048, 49), (1, 50257), (8192, 32)],
    square_norm: [(64, 100, 128), (32, 512, 64), (4, 512, 512)],
}


def title(family, shape):
    """family_shape: numbers and words joined by underscores, a flag by its name."""
    flags = family.__code__.co_varnames
    words = [("" if value else "un") + flags[i] if isinstance(value, bool) else str(value).replace(" ", "_")
             for i, value in enumerate(shape) if value != ""]
    return "_".join([family.__name__, *words])


OPERATORS = {**NAMED, **{title(family, shape): (family, *shape) for table in (SHAPES, MORE_SHAPES)
                         for family, shapes in table.items() for shape in shapes}}
