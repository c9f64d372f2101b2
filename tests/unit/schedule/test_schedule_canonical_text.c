/* foreloop_canonical_text: the rule, piece by piece; the size protocol; any bytes. */
#include "random.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdlib.h>
#include <string.h>

static char result[1 << 16], again[1 << 16];

static size_t rewrite(const char *text, size_t length, char *buffer) {
    size_t needed = 0;
    if (foreloop_canonical_text(text, length, buffer, sizeof result, &needed, NULL) != FORELOOP_OK)
        return SIZE_MAX;
    return needed;
}

static void check(const char *name, const char *text, const char *expected) {
    size_t size = rewrite(text, strlen(text), result);
    if (!CHECK(size == strlen(expected) && memcmp(result, expected, size) == 0, "%s", name))
        printf("# got: %.*s\n", (int)size, result);
    size_t twice = rewrite(result, size, again);
    CHECK(twice == size && memcmp(again, result, size) == 0, "%s: idempotent", name);
}

static void test_rule(void) {
    check("empty", "", "");
    check("only comments and blanks", "# a\n  \n\t# b\n", "");
    check("comments", "x = 1  # why\n# with T.sblock(\"root\"):\ny = '#' # no\n", "x = 1\ny = '#'");
    check("newlines", "a\r\nb\rc\n\n\nd", "a\nb\nc\nd");
    check("blanks", "a  =\t b   \n", "a = b");
    check("levels", "a:\n    b:\n        c\n    d\ne", "a:\n b:\n  c\n d\ne");
    check("a return by one level of three", "a:\n    b:\n        c:\n            d\n        e",
          "a:\n b:\n  c:\n   d\n  e");
    check("levels of two, and tabs", "a:\n  b:\n  \tc\n  d\n", "a:\n b:\n  c\n d");
    check("a text that starts indented", "        a:\n            b\n    c\n        d", "a:\n b\nc\n d");
    check("an uneven return", "a\n        b\n    c\n        d", "a\n b\n c\n  d");
    check("wrapper lines",
          "from tvm.script import ir as I\nimport tvm\n@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n"
          "    def main(A: T.handle):\n        T.func_attr({\"global_symbol\": \"main\", \"tir.noalias\": "
          "T.bool(True)})\n"
          "        x",
          "def main(A: T.handle):\n x");
    check("both decorators",
          "@T.prim_func\ndef f():\n@T.prim_func(private=True, s_tir=True) # c\ndef g():", "def f():\ndef g():");
    check("what only looks like a wrapper", "classes:\nfromage = 1\nclass X(Y):\n@T.prim_func([1])\nfrom \"x\"",
          "classes:\nfromage = 1\nclass X(Y):\n@T.prim_func([1])\nfrom \"x\"");
    check("attributes that matter stay",
          "T.func_attr({\"tirx.noalias\": True})\nT.func_attr({\"tirx.noalias\": True, \"layout_free_buffers\": [1]})",
          "T.func_attr({\"tir.noalias\": True, \"layout_free_buffers\": [1]})");
    check("renamed keywords",
          "with T.sblock(\"T.sblock\"):\n    T.sblock_attr({})\n    a = T.sblock_alloc_buffer((1,))\n    xT.sblock",
          "with T.block(\"T.sblock\"):\n T.block_attr({})\n a = T.alloc_buffer((1,))\n xT.sblock");
    check("buffers in brackets", "A: T.Buffer[(1, 2), \"float32\"], B: T.Buffer[(x[1],)]",
          "A: T.Buffer((1, 2), \"float32\"), B: T.Buffer((x[1],))");
    check("nested and unbalanced buffers", "T.Buffer[T.Buffer[1], (2]\n]]] T.Buffer[",
          "T.Buffer(T.Buffer(1), (2]\n)]] T.Buffer(");
    check("strings stay", "x = \"a  #\\\" b\t\" + 'c  \\' #'", "x = \"a  #\\\" b\t\" + 'c  \\' #'");
    check("long strings stay", "m = \"\"\"\n  {  # \" \n\n class A:\n\"\"\"  # end\nn",
          "m = \"\"\"\n  {  # \" \n\n class A:\n\"\"\"\nn");
    check("strings without an end", "a = \"b  \n  c = '''d  \n\n", "a = \"b  \n c = '''d  \n\n");
}

static void test_renamed_equal(void) {
    const char *old_text = "@T.prim_func\ndef main(A: T.Buffer[(4, 4), \"float32\"]) -> None:\n"
                           "    T.func_attr({\"global_symbol\": \"main\", \"tir.noalias\": True})\n"
                           "    for i in T.serial(4):\n        with T.block(\"b\"):\n            A[i, i] = 0\n";
    const char *new_text =
        "# from tvm.script import tirx as T\n\n@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n"
        "    def main(A: T.Buffer((4, 4), \"float32\")) -> None:\n"
        "        T.func_attr({\"tirx.noalias\": True})\n        # with T.sblock(\"root\"):\n"
        "        for i in T.serial(4):\n            with T.sblock(\"b\"):\n                A[i, i] = 0";
    size_t a = rewrite(old_text, strlen(old_text), result), b = rewrite(new_text, strlen(new_text), again);
    CHECK(a == b && memcmp(result, again, a) == 0, "programs of an old and a new TVM come out equal");
}

static void test_sizes(void) {
    const char *text = "a:\n    b # c\n";
    char buffer[8] = "#######";
    size_t needed = 99;
    foreloop_error error = {.code = FORELOOP_OK};
    CHECK(foreloop_canonical_text(text, strlen(text), NULL, 0, &needed, &error) == FORELOOP_OK && needed == 5,
          "capacity 0 gives the size");
    CHECK(foreloop_canonical_text(text, strlen(text), buffer, 4, &needed, &error) == FORELOOP_ERROR_LIMIT &&
              needed == 5 && buffer[0] == '#' && strchr(error.message, '5'),
          "too small: LIMIT, the size, an untouched buffer");
    CHECK(foreloop_canonical_text(text, strlen(text), buffer, 5, &needed, &error) == FORELOOP_OK && needed == 5 &&
              memcmp(buffer, "a:\n b##", 7) == 0,
          "exactly enough, and nothing behind it");
    CHECK(foreloop_canonical_text(NULL, 0, NULL, 0, &needed, NULL) == FORELOOP_OK && needed == 0, "no text at all");
    CHECK(foreloop_canonical_text(NULL, 1, NULL, 0, &needed, NULL) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_canonical_text("a", 1, NULL, 1, &needed, NULL) == FORELOOP_ERROR_ARGUMENT &&
              foreloop_canonical_text("a", 1, buffer, 1, NULL, NULL) == FORELOOP_ERROR_ARGUMENT,
          "NULL arguments");
}

/* Texts of pieces that the rule reads, in any order, and of any bytes. */
static void test_random(void) {
    static const char *const pieces[] = {"\n",
                                         "\r\n",
                                         "    ",
                                         "\t",
                                         " ",
                                         "#",
                                         "\"",
                                         "'",
                                         "\"\"\"",
                                         "'''",
                                         "\\",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "T.Buffer[",
                                         "T.sblock",
                                         "class M:",
                                         "from ",
                                         "x",
                                         "\0",
                                         "\xff",
                                         "\xc3\xa9",
                                         "@T.prim_func(",
                                         "import a",
                                         "{",
                                         "}",
                                         ":",
                                         "T.func_attr({\"tirx.noalias\": True})",
                                         "\"tirx.noalias\"",
                                         ",",
                                         "\n"};
    random_source random = {12345};
    int idempotent = 1, bounded = 1, same = 1;
    for (int round = 0; round < 20000; round++) {
        char text[512];
        size_t length = 0;
        for (uint32_t count = random_below(&random, 30); count > 0; count--) {
            const char *piece = pieces[random_below(&random, sizeof pieces / sizeof pieces[0])];
            size_t size = *piece ? strlen(piece) : 1;
            if (length + size > sizeof text)
                break;
            memcpy(text + length, piece, size);
            length += size;
        }
        size_t needed = 0, size = rewrite(text, length, result);
        foreloop_canonical_text(text, length, NULL, 0, &needed, NULL);
        same = same && needed == size;
        bounded = bounded && size <= length;
        int equal = rewrite(result, size, again) == size && memcmp(result, again, size) == 0;
        if (!equal && idempotent) {
            printf("# not idempotent:");
            for (size_t i = 0; i < length; i++)
                printf(" %02x", (unsigned char)text[i]);
            printf("\n");
        }
        idempotent = idempotent && equal;
    }
    CHECK(idempotent, "random texts: idempotent");
    CHECK(bounded, "random texts: never longer than the input");
    CHECK(same, "random texts: counting and writing agree");
}

/* Deep indentation and brackets go beyond every table of the rule. */
static void test_deep(void) {
    static char text[60000];
    size_t length = 0;
    for (size_t line = 0; line < 300; line++) {
        for (size_t i = 0; i < line % 200; i++)
            text[length++] = ' ';
        memcpy(text + length, "T.Buffer[\n", 10);
        length += 10;
    }
    for (size_t i = 0; i < 300; i++)
        text[length++] = ']';
    size_t size = rewrite(text, length, result);
    CHECK(size < length && rewrite(result, size, again) == size && memcmp(result, again, size) == 0,
          "300 levels and 300 brackets: idempotent");
}

int main(void) {
    test_rule();
    test_renamed_equal();
    test_sizes();
    test_random();
    test_deep();
    return tap_done();
}
