"""Writes golden.txt: what PyTorch computes of the cases of `../torch.rs`, and its gradients.

    python3 golden.py > golden.txt

A line is a case's name, `out` or `d` and an operand's number (the gradient of the sum of all results, each times its number of `numbers(.., 9)`),
the shape, and the elements."""

import torch
import torch.nn.functional as F

torch.set_num_threads(1)


def numbers(shape, seed):
    n = 1
    for extent in shape:
        n *= extent
    return torch.tensor([((i * 389 + seed * 101 + 11) % 1009 - 504) / 128 for i in range(n)]).reshape(shape)


def integers(shape, seed, below):
    n = 1
    for extent in shape:
        n *= extent
    return torch.tensor([(i * 389 + seed * 101 + 11) % 1009 % below for i in range(n)]).reshape(shape)


CAUSAL = torch.tril(torch.ones(3, 5, dtype=torch.bool), 2)

CASES = {
    "unfold": ([(3, 11)], lambda x: x.unfold(1, 4, 3)),
    "conv1d": ([(2, 4, 13), (6, 2, 3)], lambda x, w: F.conv1d(x, w, stride=2, padding=1, dilation=2, groups=2)),
    "conv2d": ([(2, 3, 7, 8), (4, 3, 3, 3)], lambda x, w: F.conv2d(x, w)),
    "conv2d_all": ([(2, 4, 9, 8), (6, 2, 3, 2)], lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2)),
    "conv2d_depthwise": ([(1, 3, 6, 6), (3, 1, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1, groups=3)),
    "conv2d_far": ([(1, 1, 9, 9), (1, 1, 2, 2)], lambda x, w: F.conv2d(x, w, stride=5)),
    "conv3d": ([(1, 2, 5, 4, 6), (3, 2, 2, 3, 2)], lambda x, w: F.conv3d(x, w, stride=(1, 2, 1), padding=1)),
    "conv_transpose1d": ([(2, 4, 5), (4, 3, 3)], lambda x, w: F.conv_transpose1d(x, w, stride=3, padding=1, output_padding=2, groups=2, dilation=2)),
    "conv_transpose2d": ([(1, 3, 4, 5), (3, 2, 3, 2)], lambda x, w: F.conv_transpose2d(x, w, stride=(2, 1), padding=(1, 0), output_padding=(1, 0))),
    "conv_transpose2d_inside": ([(1, 2, 6, 6), (2, 2, 3, 3)], lambda x, w: F.conv_transpose2d(x, w, padding=3)),
    "max_pool1d": ([(2, 3, 10)], lambda x: F.max_pool1d(x, 3, stride=2, padding=1)),
    "max_pool2d": ([(2, 3, 7, 8)], lambda x: F.max_pool2d(x, (3, 2), padding=(1, 0), dilation=(1, 2))),
    "avg_pool1d": ([(2, 3, 10)], lambda x: F.avg_pool1d(x, 4)),
    "avg_pool2d": ([(2, 3, 9, 8)], lambda x: F.avg_pool2d(x, 3, stride=2, padding=1)),
    "interpolate_nearest_1": ([(2, 3, 5)], lambda x: F.interpolate(x, size=(8,), mode="nearest")),
    "interpolate_nearest_2": ([(1, 2, 4, 5)], lambda x: F.interpolate(x, size=(7, 3), mode="nearest")),
    "interpolate_linear_up": ([(1, 2, 4, 5)], lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False)),
    "interpolate_linear_down": ([(1, 2, 7, 5)], lambda x: F.interpolate(x, size=(3, 2), mode="bilinear", align_corners=False)),
    "layer_norm": ([(4, 10)], lambda x: F.layer_norm(x, (10,))),
    "layer_norm_2": ([(3, 4, 5)], lambda x: F.layer_norm(x, (4, 5), eps=1e-3)),
    "rms_norm": ([(4, 10)], lambda x: F.rms_norm(x, (10,), eps=1e-5)),
    "group_norm": ([(2, 6, 5)], lambda x: F.group_norm(x, 3)),
    "batch_norm": ([(3, 4, 5)], lambda x: F.batch_norm(x, None, None, training=True)),
    "normalize": ([(3, 5)], lambda x: F.normalize(x, dim=0, eps=1e-12)),
    "vector_norm": ([(3, 5)], lambda x: torch.linalg.vector_norm(x, dim=1)),
    "cosine_similarity": ([(3, 5), (3, 5)], lambda x, y: F.cosine_similarity(x, y, dim=1, eps=1e-8)),
    "attention": ([(2, 3, 4), (2, 5, 4), (2, 5, 6)], lambda q, k, v: F.scaled_dot_product_attention(q, k, v)),
    "attention_causal": ([(2, 3, 4), (2, 5, 4), (2, 5, 6)], lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=CAUSAL)),
    "causal_attention": ([(2, 3, 4), (2, 5, 4), (2, 5, 6)], lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=CAUSAL)),
    "attention_bias": ([(2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5)], lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, attn_mask=b)),
    "relu6": ([(40,)], lambda x: F.relu6(x * 3)),
    "hardtanh": ([(40,)], F.hardtanh),
    "hardsigmoid": ([(40,)], F.hardsigmoid),
    "hardswish": ([(40,)], F.hardswish),
    "log_sigmoid": ([(40,)], F.logsigmoid),
    "mish": ([(40,)], F.mish),
    "selu": ([(40,)], F.selu),
    "softsign": ([(40,)], F.softsign),
    "gelu_erf": ([(40,)], F.gelu),
    "gelu": ([(40,)], lambda x: F.gelu(x, approximate="tanh")),
    "silu": ([(40,)], F.silu),
    "sigmoid": ([(40,)], torch.sigmoid),
    "softplus": ([(40,)], F.softplus),
    "elu": ([(40,)], lambda x: F.elu(x, 1.5)),
    "leaky_relu": ([(40,)], lambda x: F.leaky_relu(x, 0.1)),
    "softmax": ([(4, 9)], lambda x: F.softmax(x, 0)),
    "log_softmax": ([(4, 9)], lambda x: F.log_softmax(x, 1)),
    "logsumexp": ([(4, 9)], lambda x: torch.logsumexp(x, 1)),
    "repeat": ([(2, 3)], lambda x: x.repeat_interleave(3, 1)),
    "moveaxis": ([(2, 3, 4)], lambda x: x.movedim(0, 2)),
    "swapaxes": ([(2, 3, 4)], lambda x: x.swapaxes(0, 2)),
    "unstack": ([(2, 3, 4)], lambda x: x.unbind(1)[2]),
    "diagonal": ([(2, 4, 5)], lambda x: x.diagonal(0, 1, 2)),
    "diagonal_above": ([(2, 4, 5)], lambda x: x.diagonal(2, 1, 2)),
    "diagonal_below": ([(5, 3)], lambda x: x.diagonal(-1)),
    "trace": ([(4, 5)], torch.trace),
    "outer": ([(4,), (3,)], torch.outer),
    "cross": ([(4, 3), (4, 3)], lambda x, y: torch.linalg.cross(x, y)),
    "matrix_power": ([(2, 3, 3)], lambda x: torch.linalg.matrix_power(x, 3)),
    "tensordot": ([(2, 3, 4), (3, 4, 5)], lambda x, y: torch.tensordot(x, y, 2)),
    "vecdot": ([(2, 3, 4), (3, 4)], lambda x, y: torch.linalg.vecdot(x, y.expand(2, 3, 4), dim=1)),
    "glu": ([(3, 6)], lambda x: F.glu(x, 1)),
    "cumsum": ([(3, 6)], lambda x: x.cumsum(1)),
    "cumprod": ([(3, 4)], lambda x: x.cumprod(1)),
    "roll": ([(3, 6)], lambda x: x.roll(2, 1)),
    "tile": ([(3, 2)], lambda x: x.tile(1, 3)),
    "tril": ([(2, 4, 4)], lambda x: x.tril(-1)),
    "triu": ([(2, 4, 5)], lambda x: x.triu(1)),
    "diff": ([(3, 6)], lambda x: x.diff(dim=0)),
    "var": ([(3, 6)], lambda x: x.var(1, correction=0)),
    "std": ([(3, 6)], lambda x: x.std(0, correction=0)),
    "prod": ([(3, 4)], lambda x: x.prod(1)),
    "max": ([(3, 6)], lambda x: x.amax(1)),
    "min": ([(3, 6)], lambda x: x.amin(0)),
    "einsum_1": ([(2, 3, 4), (4, 5)], lambda x, y: torch.einsum("bij,jk->bik", x, y)),
    "einsum_2": ([(3, 4), (4,), (3, 5)], lambda x, y, z: torch.einsum("ij,j,ik->k", x, y, z)),
    "einsum_3": ([(4, 4)], lambda x: torch.einsum("ii->i", x)),
    "matmul": ([(2, 1, 3, 4), (5, 4, 2)], torch.matmul),
    "remainder": ([(40,), (40,)], torch.remainder),
    "fmod": ([(40,), (40,)], torch.fmod),
    "maximum": ([(40,), (40,)], torch.maximum),
    "minimum": ([(40,), (40,)], torch.minimum),
    "logaddexp": ([(40,), (40,)], torch.logaddexp),
    "atan2": ([(40,), (40,)], torch.atan2),
    "hypot": ([(40,), (40,)], torch.hypot),
    "copysign": ([(40,), (40,)], torch.copysign),
    "clip": ([(40,)], lambda x: x.clip(-1, 2)),
    "sort": ([(3, 7)], lambda x: x.sort(1, descending=True)[0]),
    "topk": ([(3, 7)], lambda x: x.topk(3, 1)[0]),
    "gather": ([(4, 5)], lambda x: x.gather(1, integers((4, 3), 3, 5))),
    "index_select": ([(4, 5)], lambda x: x.index_select(0, integers((6,), 3, 4))),
    "embedding": ([(7, 3)], lambda x: F.embedding(integers((2, 4), 3, 7), x)),
    "scatter_add": ([(4, 5), (4, 6)], lambda x, y: x.scatter_add(1, integers((4, 6), 3, 5), y)),
    "scatter_max": ([(4, 5), (4, 6)], lambda x, y: x.scatter_reduce(1, integers((4, 6), 3, 5), y, "amax")),
    "mse_loss": ([(3, 5), (3, 5)], F.mse_loss),
    "l1_loss": ([(3, 5), (3, 5)], F.l1_loss),
    "huber_loss": ([(3, 5), (3, 5)], lambda x, y: F.huber_loss(x, y, delta=1.5)),
    "smooth_l1_loss": ([(3, 5), (3, 5)], lambda x, y: F.smooth_l1_loss(x, y, beta=1.5)),
    "kl_div": ([(3, 5), (3, 5)], lambda x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean")),
    "nll_loss": ([(3, 5)], lambda x: F.nll_loss(x, integers((3,), 3, 5))),
    "bce_loss": ([(3, 5), (3, 5)], lambda x, y: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))),
    "cross_entropy": ([(3, 5)], lambda x: F.cross_entropy(x, integers((3,), 3, 5))),
}


def line(name, what, values):
    shape = ",".join(str(extent) for extent in values.shape) or "-"
    numbers = " ".join(f"{value:.9g}" for value in values.detach().reshape(-1).tolist())
    print(f"{name}\t{what}\t{shape}\t{numbers}")


for name, (shapes, of) in CASES.items():
    operands = [numbers(shape, seed).requires_grad_() for seed, shape in enumerate(shapes, 1)]
    out = of(*operands)
    line(name, "out", out)
    weight = numbers(tuple(out.shape), 9)
    gradients = torch.autograd.grad((out * weight).sum(), operands, allow_unused=True)
    for number, (gradient, operand) in enumerate(zip(gradients, operands)):
        line(name, f"d{number}", torch.zeros_like(operand) if gradient is None else gradient)
