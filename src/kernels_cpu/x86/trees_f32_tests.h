/*
 * The part of trees_f32 that is the same for every width of registers: from codes to the rows' leaf numbers. Before it
 * is included, a tier gives CODES_STRIDE, from one column of codes to the next; `bytes`, a register of rows, one a
 * byte; `decision`, for each row whether it goes right; and load_bytes(p)            the codes of a column
 * load_table(p)            the TABLE bytes at p, in every 128 bits spread_byte(b)           b in every byte
 *   add_bytes(a, b)          sums of bytes
 *   look_up(table, numbers)  table[numbers & 15], for numbers below 128
 *   compare(codes, thresholds)           the decision: right when the code is above the threshold
 *   choose(decision, left, right)        left or right
 *   add_decision(numbers, decision, bit) the numbers with this bit where rows go right
 *   replace(states, piece, exits)        the states that are not `piece`, and exits for the others
 * and `sums` with add_leaves(s, leaves, numbers, bits), which adds leaves[numbers], numbers of so many bits, 8 at most.
 * Near the limit of the loads: one of codes and one of its place for each test.
 */
#ifndef FORELOOP_KERNELS_CPU_X86_TREES_F32_TESTS_H
#define FORELOOP_KERNELS_CPU_X86_TREES_F32_TESTS_H

/* The columns and thresholds of a complete tree or of a piece, level by level. */
typedef struct tests {
    const int8_t *thresholds;
    const uint16_t *columns;
    const int8_t *codes;
} tests;

/* The codes of the node where each row is, among 1, 2, 4 ... nodes from i on. The last decision, which is known last,
 * chooses last. */
INLINE bytes codes_of_1(const tests *t, size_t i) {
    return load_bytes(t->codes + t->columns[i] * (size_t)(CODES_STRIDE / FORELOOP_TREES_COLUMN_UNIT));
}
INLINE bytes codes_of_2(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[0], codes_of_1(t, i), codes_of_1(t, i + 1));
}
INLINE bytes codes_of_4(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[1], codes_of_2(t, i, decisions), codes_of_2(t, i + 2, decisions));
}
INLINE bytes codes_of_8(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[2], codes_of_4(t, i, decisions), codes_of_4(t, i + 4, decisions));
}
INLINE bytes codes_of_16(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[3], codes_of_8(t, i, decisions), codes_of_8(t, i + 8, decisions));
}
INLINE bytes codes_of_32(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[4], codes_of_16(t, i, decisions), codes_of_16(t, i + 16, decisions));
}
INLINE bytes codes_of_64(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[5], codes_of_32(t, i, decisions), codes_of_32(t, i + 32, decisions));
}
INLINE bytes codes_of_128(const tests *t, size_t i, const decision *decisions) {
    return choose(decisions[6], codes_of_64(t, i, decisions), codes_of_64(t, i + 64, decisions));
}

/* The thresholds of those nodes. */
INLINE bytes thresholds_of_16(const tests *t, size_t i, bytes numbers) {
    return look_up(load_table(t->thresholds + i), numbers);
}
INLINE bytes thresholds_of_32(const tests *t, size_t i, const decision *decisions, bytes numbers) {
    return choose(decisions[4], thresholds_of_16(t, i, numbers), thresholds_of_16(t, i + 16, numbers));
}
INLINE bytes thresholds_of_64(const tests *t, size_t i, const decision *decisions, bytes numbers) {
    return choose(decisions[5], thresholds_of_32(t, i, decisions, numbers),
                  thresholds_of_32(t, i + 32, decisions, numbers));
}
INLINE bytes thresholds_of_128(const tests *t, size_t i, const decision *decisions, bytes numbers) {
    return choose(decisions[6], thresholds_of_64(t, i, decisions, numbers),
                  thresholds_of_64(t, i + 64, decisions, numbers));
}

/* Makes the decisions of one level, which are decisions[level]; gives the rows' numbers on the next one. */
INLINE bytes pass_level(const tests *t, decision *decisions, bytes numbers, int level) {
    const size_t i = ((size_t)1 << level) - 1;
    const bytes thresholds = level == 0   ? spread_byte(t->thresholds[0])
                             : level <= 4 ? thresholds_of_16(t, i, numbers)
                             : level == 5 ? thresholds_of_32(t, i, decisions, numbers)
                             : level == 6 ? thresholds_of_64(t, i, decisions, numbers)
                                          : thresholds_of_128(t, i, decisions, numbers);
    const bytes codes = level == 0   ? codes_of_1(t, i)
                        : level == 1 ? codes_of_2(t, i, decisions)
                        : level == 2 ? codes_of_4(t, i, decisions)
                        : level == 3 ? codes_of_8(t, i, decisions)
                        : level == 4 ? codes_of_16(t, i, decisions)
                        : level == 5 ? codes_of_32(t, i, decisions)
                        : level == 6 ? codes_of_64(t, i, decisions)
                                     : codes_of_128(t, i, decisions);
    decisions[level] = compare(codes, thresholds);
    return add_decision(numbers, decisions[level], 1 << level);
}

/* The rows' numbers below `depth` complete levels, a constant; no loop, so that nothing depends on its unrolling. */
INLINE bytes number_rows(const tests *t, int depth) {
    decision decisions[FORELOOP_TREES_DEPTH];
    bytes numbers = spread_byte(0);
    if (depth > 0)
        numbers = pass_level(t, decisions, numbers, 0);
    if (depth > 1)
        numbers = pass_level(t, decisions, numbers, 1);
    if (depth > 2)
        numbers = pass_level(t, decisions, numbers, 2);
    if (depth > 3)
        numbers = pass_level(t, decisions, numbers, 3);
    if (depth > 4)
        numbers = pass_level(t, decisions, numbers, 4);
    if (depth > 5)
        numbers = pass_level(t, decisions, numbers, 5);
    if (depth > 6)
        numbers = pass_level(t, decisions, numbers, 6);
    if (depth > 7)
        numbers = pass_level(t, decisions, numbers, 7);
    return numbers;
}

/* Where rows are in a tree that is cut into pieces. */
typedef struct cut_tree {
    tests tests;          /* of the next piece */
    const uint8_t *exits; /* of the next piece */
    bytes piece, states;
} cut_tree;

/* Takes the rows through the next pieces, all of `depth` levels, a constant. */
INLINE void pass_pieces(cut_tree *c, size_t count, int depth) {
    const bytes one = spread_byte(1);
    for (size_t i = 0; i < count; i++) {
        const bytes exits = look_up(load_table(c->exits), number_rows(&c->tests, depth));
        c->states = replace(c->states, c->piece, exits);
        c->piece = add_bytes(c->piece, one);
        c->tests.thresholds += (1 << depth) - 1;
        c->tests.columns += (1 << depth) - 1;
        c->exits += 1 << depth;
    }
}

/* Adds the leaves of the trees to the sums of a register's rows. */
INLINE void add_trees(sums s, const int8_t *codes, const foreloop_trees_data *data, const foreloop_trees_tree *trees,
                      size_t tree_count) {
    for (size_t k = 0; k < tree_count; k++) {
        const foreloop_trees_tree *tree = &trees[k];
        const tests t = {data->thresholds + tree->test, data->columns + tree->test, codes};
        const float *leaves = data->leaves + tree->leaf;
        if (tree->shape == FORELOOP_TREES_PIECES) {
            cut_tree c = {t, data->exits + tree->exit, spread_byte(0), spread_byte(0)};
            pass_pieces(&c, tree->pieces[0], 3);
            pass_pieces(&c, tree->pieces[1], 2);
            pass_pieces(&c, tree->pieces[2], 1);
            add_leaves(s, leaves, c.states, 8);
            continue;
        }
        switch (tree->depth) {
        case 0:
            add_leaves(s, leaves, number_rows(&t, 0), 0);
            break;
        case 1:
            add_leaves(s, leaves, number_rows(&t, 1), 1);
            break;
        case 2:
            add_leaves(s, leaves, number_rows(&t, 2), 2);
            break;
        case 3:
            add_leaves(s, leaves, number_rows(&t, 3), 3);
            break;
        case 4:
            add_leaves(s, leaves, number_rows(&t, 4), 4);
            break;
        case 5:
            add_leaves(s, leaves, number_rows(&t, 5), 5);
            break;
        case 6:
            add_leaves(s, leaves, number_rows(&t, 6), 6);
            break;
        case 7:
            add_leaves(s, leaves, number_rows(&t, 7), 7);
            break;
        default:
            add_leaves(s, leaves, number_rows(&t, 8), 8);
        }
    }
}

#endif
