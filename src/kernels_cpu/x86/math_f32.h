/* exp and the activations on vectors. Coefficients are minimax fits, made for this file. */
#ifndef FORELOOP_KERNELS_CPU_X86_MATH_F32_H
#define FORELOOP_KERNELS_CPU_X86_MATH_F32_H

#include "kernels_cpu/activation_f32.h"
#include "kernels_cpu/x86/vector.h"

/* e^x within 1.2 units in the last place, for x from -87 to 88; beyond as at these bounds. A NaN stays one. */
VECTOR_INLINE vec vec_exp(vec x) {
    x = vec_min(vec_set(88.0f), vec_max(vec_set(-87.0f), x));
    const vec n = vec_round(vec_mul(x, vec_set(0x1.715476p+0f)));
    /* ln 2 in two parts, of which the first has zeros at its end, so that n times it is exact. */
    vec r = vec_fma(n, vec_set(-0x1.62e4p-1f), x);
    r = vec_fma(n, vec_set(-0x1.7f7d1cp-20f), r);
    vec q = vec_set(0x1.6a23ccp-10f);
    q = vec_fma(q, r, vec_set(0x1.123a20p-7f));
    q = vec_fma(q, r, vec_set(0x1.5558f2p-5f));
    q = vec_fma(q, r, vec_set(0x1.555492p-3f));
    q = vec_fma(q, r, vec_set(0x1.fffffcp-2f));
    const vec tail = vec_fma(vec_mul(r, r), q, r);
    return vec_scale(vec_add(tail, vec_set(1.0f)), n);
}

/* x Phi(x), with Phi(x) - 1/2 = c P(c^2) / Q(c^2) for x cut to |c| <= 5.6, where it comes to exactly 1/2. */
VECTOR_INLINE vec vec_gelu(vec x) {
    const vec c = vec_min(vec_set(5.6f), vec_max(vec_set(-5.6f), x)), u = vec_mul(c, c);
    vec p = vec_set(-0x1.487174p-34f), q = vec_set(0x1.0b5b58p-19f);
    p = vec_fma(p, u, vec_set(0x1.c304cep-25f));
    q = vec_fma(q, u, vec_set(0x1.56c4f8p-14f));
    p = vec_fma(p, u, vec_set(0x1.1af960p-17f));
    q = vec_fma(q, u, vec_set(0x1.fa0f0ap-10f));
    p = vec_fma(p, u, vec_set(0x1.639252p-13f));
    q = vec_fma(q, u, vec_set(0x1.d22570p-6f));
    p = vec_fma(p, u, vec_set(0x1.3a96e2p-8f));
    q = vec_fma(q, u, vec_set(0x1.fcf534p-3f));
    p = vec_fma(p, u, vec_set(0x1.0b7d5ap-5f));
    q = vec_fma(q, u, vec_set(1.0f));
    p = vec_fma(p, u, vec_set(0x1.988454p-2f));
    return vec_fma(x, vec_div(vec_mul(c, p), q), vec_mul(x, vec_set(0.5f)));
}

/* x (1 + tanh t) / 2 = x / (1 + e^-2t), t = sqrt(2 / pi) (x + 0.044715 x^3) */
VECTOR_INLINE vec vec_gelu_tanh(vec x) {
    const vec cube = vec_mul(vec_mul(x, x), x);
    const vec t = vec_fma(cube, vec_set(0.044715f), x);
    return vec_div(x, vec_add(vec_set(1.0f), vec_exp(vec_mul(t, vec_set(-2.0f * 0.79788456080286536f)))));
}

VECTOR_INLINE vec vec_relu(vec x) {
    return vec_max(vec_set(0.0f), x);
}

VECTOR_INLINE vec vec_activate(vec x, foreloop_activation activation) {
    switch (activation) {
    case FORELOOP_ACTIVATION_GELU:
        return vec_gelu(x);
    case FORELOOP_ACTIVATION_GELU_TANH:
        return vec_gelu_tanh(x);
    case FORELOOP_ACTIVATION_RELU:
        return vec_relu(x);
    default:
        return x;
    }
}

#endif
