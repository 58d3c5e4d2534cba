"""Writes jax_fixtures.json: attention and its gradients by JAX in float64, which the truth is compared with (jax_test.cpp).

    python3 -m venv /tmp/jax && /tmp/jax/bin/pip install jax && /tmp/jax/bin/python tests/kernels/reference/jax_fixtures.py

Inputs are not stored: grid_number below is kernels/reference/fixture_numbers.h. Gradients are JAX's own (reverse mode), and where
jax.nn.dot_product_attention takes the shapes its output has to agree (to float32: its softmax always is).
"""

import json
import pathlib
import platform

import jax
import jax.numpy as jnp
import numpy

jax.config.update("jax_enable_x64", True)

WORD = 2**64 - 1


def grid_number(seed, index, fraction_bits=10):
    z = (((seed << 32) + index + 1) * 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    z ^= z >> 31
    bits = fraction_bits + 2
    return ((z >> (64 - bits)) - 2 ** (bits - 1)) / 2**fraction_bits


def tensor(seed, *shape):
    count = int(numpy.prod(shape))
    return jnp.array([grid_number(seed, i) for i in range(count)], dtype=jnp.float64).reshape(shape)


def visible(case):
    """mask[q][k]: what a person would write down for each kind, not what the C++ computes."""
    s_q, s_kv = case["queries"], case["keys"]
    mask = numpy.zeros((s_q, s_kv), dtype=bool)
    if case["mask"] == "full":
        mask[:] = True
    elif case["mask"] in ("causal", "window"):
        for i in range(s_q):
            last = i + s_kv - s_q
            first = 0 if case["mask"] == "causal" else last - case["window"] + 1
            for j in range(s_kv):
                mask[i, j] = first <= j <= last
    else:
        start = 0
        for real, padded in case["documents"]:
            for i in range(real):
                for j in range(i + 1):
                    if case["window"] == 0 or j > i - case["window"]:
                        mask[start + i, start + j] = True
            start += padded
    return jnp.array(mask)


def rotated(x, positions):
    """Halves as real and imaginary part, turned by a complex unit number."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * 10000.0 ** (-2.0 * jnp.arange(half) / x.shape[-1])
    turned = (x[..., :half] + 1j * x[..., half:]) * jnp.exp(1j * angle)[:, None, :]
    return jnp.concatenate([turned.real, turned.imag], axis=-1)


def attention(q, k, v, mask, scale):
    group = q.shape[1] // k.shape[1]
    scores = jnp.einsum("ihd,jhd->hij", q, jnp.repeat(k, group, axis=1)) * scale
    scores = jnp.where(mask, scores, -jnp.inf)
    sees = mask.any(axis=-1)
    # A row of -inf has no gradient: it is replaced before the softmax and dropped after.
    scores = jnp.where(sees[:, None], scores, 0.0)
    lse = jnp.where(sees, jax.nn.logsumexp(scores, axis=-1), -jnp.inf)
    weights = jnp.where(sees[:, None], jax.nn.softmax(scores, axis=-1), 0.0)
    return jnp.einsum("hij,jhd->ihd", weights, jnp.repeat(v, group, axis=1)), lse.T


def flat(x):
    return [value if numpy.isfinite(value) else "-inf" for value in numpy.asarray(x).ravel().tolist()]


def figures(case):
    h_q, h_kv, d_qk, d_v = case["heads"]
    scale = d_qk**-0.5
    q, dout = tensor(1, case["queries"], h_q, d_qk), tensor(4, case["queries"], h_q, d_v)
    k, v = tensor(2, case["keys"], h_kv, d_qk), tensor(3, case["keys"], h_kv, d_v)
    mask = visible(case)

    def forward(q, k, v):
        if case["rope"]:
            q, k = rotated(q, jnp.arange(case["queries"])), rotated(k, jnp.arange(case["keys"]))
        return attention(q, k, v, mask, scale)

    (out, lse), backward = jax.vjp(forward, q, k, v)
    dq, dk, dv = backward((dout, jnp.zeros_like(lse)))
    if d_qk == d_v and not case["rope"]:
        peer = jax.nn.dot_product_attention(q[None], k[None], v[None], mask=mask[None, None], scale=scale)[0]
        sees = mask.any(axis=-1)
        assert jnp.abs(jnp.where(sees[:, None, None], peer - out, 0.0)).max() < 1e-6, case["name"]
    return {**case, "out": flat(out), "lse": flat(lse), "dq": flat(dq), "dk": flat(dk), "dv": flat(dv)}


def case(name, mask, heads, queries, keys, window=0, documents=(), rope=False):
    return dict(name=name, mask=mask, heads=heads, queries=queries, keys=keys, window=window, documents=documents, rope=rope)


DOCUMENTS = ((5, 8), (1, 4), (0, 0), (3, 4))
CASES = [
    case("grouped heads, causal", "causal", (4, 2, 4, 4), 7, 7),
    case("full", "full", (2, 2, 4, 4), 5, 5),
    case("window", "window", (2, 1, 4, 4), 10, 10, window=3),
    case("documents", "documents", (2, 1, 4, 4), 16, 16, documents=DOCUMENTS),
    case("documents through a window", "documents", (2, 1, 4, 4), 16, 16, window=2, documents=DOCUMENTS),
    case("d_qk != d_v", "causal", (2, 1, 6, 4), 6, 6),
    case("more keys than queries, causal", "causal", (2, 1, 4, 4), 3, 8),
    case("more queries than keys, causal", "causal", (2, 1, 4, 4), 8, 3),
    case("cross, full", "full", (2, 1, 4, 2), 3, 6),
    case("rotary positions", "causal", (2, 1, 8, 4), 8, 8, rope=True),
]

document = {
    "made_by": "tests/kernels/reference/jax_fixtures.py",
    "versions": {"jax": jax.__version__, "numpy": numpy.__version__, "python": platform.python_version()},
    "cases": [figures(c) for c in CASES],
}
lines = ",\n".join(json.dumps(c) for c in document["cases"])
text = f'{{"made_by": {json.dumps(document["made_by"])},\n"versions": {json.dumps(document["versions"])},\n"cases": [\n{lines}\n]}}\n'
(pathlib.Path(__file__).parent / "jax_fixtures.json").write_text(text)
