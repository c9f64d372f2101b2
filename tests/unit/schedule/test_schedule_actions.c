/* The walk from a trace to canonical actions: every kind of instruction, what is known and what is not. */
#include "actions_text.h"
#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdlib.h>

static char text[1 << 16], line[1 << 16];

/* Walks one trace, given in single quotes for double ones, and renders its actions. */
static size_t walk(const char *instructions, const char *decisions, int full_trace) {
    snprintf(line, sizeof line, "[0,[[[%s],[%s]],[1],null,[]]]", instructions, decisions);
    for (char *at = line; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    foreloop_records_options options;
    foreloop_records_options_init(&options, sizeof options);
    options.full_trace = full_trace;
    foreloop_records *records = NULL;
    foreloop_record record = {.size = sizeof record};
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_records_open_memory(&records, line, strlen(line), &options, &error);
    if (!records || foreloop_records_next(records, &record, &error) != FORELOOP_OK) {
        snprintf(text, sizeof text, "%s", error.message);
        record.unknown_instructions = 999;
    } else if (!actions_text(&record, text, sizeof text)) {
        snprintf(text, sizeof text, "an argument is given twice");
    }
    foreloop_records_close(records);
    return record.unknown_instructions;
}

static void check(const char *name, const char *instructions, const char *decisions, const char *expected) {
    size_t unknown = walk(instructions, decisions, 1);
    if (!CHECK(strcmp(text, expected) == 0 && unknown == 0, "%s", name))
        printf("# %zu unknown; got:\n%s# expected:\n%s", unknown, text, expected);
}

#define BLOCK(variable, name)    "['GetSBlock',[],['" name "','main'],['" variable "']]"
#define LOOPS(block, names)      "['GetLoops',['" block "'],[],[" names "]]"
#define TILE(loop, count, names) "['SamplePerfectTile',['" loop "'],[" count ",64],[" names "]]"

/* A matrix product as MetaSchedule tiles it: two spatial axes in four parts, a reduction in two. */
static const char tiled[] =
    "['GetSBlock',[],['mm','main'],['b0']],"
    "['Annotate',['b0','\\'SSRSRS\\''],['meta_schedule.tiling_structure'],[]],"
    "['GetLoops',['b0'],[],['i','j','k']],"
    "['SamplePerfectTile',['i'],[4,64],['v0','v1','v2','v3']],['Split',['i','v0','v1','v2','v3'],[1,0],"
    "['i0','i1','i2','i3']],"
    "['SamplePerfectTile',['j'],[4,64],['v4','v5','v6','v7']],['Split',['j','v4','v5','v6','v7'],[1,0],"
    "['j0','j1','j2','j3']],"
    "['SamplePerfectTile',['k'],[2,64],['v8','v9']],['Split',['k','v8','v9'],[1,0],['k0','k1']],"
    "['Reorder',['i0','j0','i1','j1','k0','i2','j2','k1','i3','j3'],[],[]]";
static const char tiled_decisions[] = "[3,[2,3,4,5]],[5,[1,2,1,8]],[7,[16,4]]";
static const char tiled_actions[] =
    "2 annotate_tiling structure=SSRSRS\n"
    "5 split_s1 extent=120 parts=4 factor_0=2 factor_1=3 factor_2=4 factor_3=5 inner=60 innermost=5\n"
    "7 split_s0 extent=16 parts=4 factor_0=1 factor_1=2 factor_2=1 factor_3=8 inner=16 innermost=8\n"
    "9 split_r0 extent=64 parts=2 factor_0=16 factor_1=4 inner=4 innermost=4\n"
    "10 reorder loops=10 innermost=8 spatial_outer=12 spatial_inner=40 reduction_inner=4 tile_0=2 tile_1=6 tile_2=16 "
    "tile_3=4 tile_4=4 tile_5=40 role=tiled block=0\n";

/* The tiled product and one thing more; expects the tiled product's actions and `expected`. */
static void check_tiled(const char *name, const char *instructions, const char *decisions, const char *expected) {
    static char all[8192], decided[1024], wanted[8192];
    snprintf(all, sizeof all, "%s,%s", tiled, instructions);
    snprintf(decided, sizeof decided, "%s%s%s", tiled_decisions, *decisions ? "," : "", decisions);
    snprintf(wanted, sizeof wanted, "%s%s", tiled_actions, expected);
    check(name, all, decided, wanted);
}

static void test_tiling(void) {
    check("multi-level tiling", tiled, tiled_decisions, tiled_actions);
    check("tiling without decisions", tiled, "",
          "2 annotate_tiling structure=SSRSRS\n5 split_s1 parts=4\n7 split_s0 parts=4\n9 split_r0 parts=2\n"
          "10 reorder loops=10 role=tiled block=0\n");
    check("decisions of a wrong length or sort", tiled, "[3,[2,3,4]],[5,[1,'2',1,8]],[7,[0,4]]",
          "2 annotate_tiling structure=SSRSRS\n5 split_s1 parts=4\n7 split_s0 parts=4\n9 split_r0 parts=2\n"
          "10 reorder loops=10 role=tiled block=0\n");
    check(
        "a GPU's structure",
        BLOCK("b", "g") ",['Annotate',['b','\\'SSSRRSRS\\''],['meta_schedule.tiling_structure'],[]]," LOOPS(
            "b",
            "'i','k'") ",['Split',['i',2,2,4,1,8],[1,0],['a','b1','c','d','e']],"
                       "['Split',['k',4,2,2],[1,0],['r','s','t']],['Reorder',['a','b1','c','r','s','d','t','e'],[],[]],"
                       "['Fuse',['a'],[1],['f']],['Bind',['f'],['blockIdx.x'],[]],['Bind',['c'],['threadIdx.x'],[]]",
        "",
        "2 annotate_tiling structure=SSSRRSRS\n"
        "4 split_s0 extent=128 parts=5 factor_0=2 factor_1=2 factor_2=4 factor_3=1 factor_4=8 inner=64 innermost=8\n"
        "5 split_r0 extent=16 parts=3 factor_0=4 factor_1=2 factor_2=2 inner=4 innermost=2\n"
        "6 reorder loops=8 innermost=8 spatial_outer=16 spatial_inner=8 reduction_inner=16 tile_0=2 tile_1=2 tile_2=4 "
        "tile_3=4 tile_4=2 tile_5=1 tile_6=2 tile_7=8 role=tiled block=0\n"
        "7 fuse loops=1 extent=2 class=spatial\n8 bind extent=2 class=spatial thread=blockIdx.x\n"
        "9 bind extent=4 class=spatial thread=threadIdx.x\n");
    check("a structure that does not tell the classes apart",
          BLOCK("b", "g") ",['Annotate',['b','\\'SRSR\\''],['meta_schedule.tiling_structure'],[]]," LOOPS(
              "b", "'i','k'") ",['Split',['i',2,4],[1,0],['a','c']]",
          "",
          "2 annotate_tiling structure=SRSR\n"
          "4 split extent=8 parts=2 factor_0=2 factor_1=4 inner=4 innermost=4\n");
    check("an axis that is not cut", /* one R: the reduction stays whole */
          BLOCK("b", "g") ",['Annotate',['b','\\'SRS\\''],['meta_schedule.tiling_structure'],[]]," LOOPS(
              "b", "'i','k'") ",['Split',['i',2,4],[1,0],['a','c']],['Reorder',['a','k','c'],[],[]]",
          "",
          "2 annotate_tiling structure=SRS\n4 split_s0 extent=8 parts=2 factor_0=2 factor_1=4 inner=4 innermost=4\n"
          "5 reorder loops=3 innermost=4 spatial_outer=2 spatial_inner=4 tile_0=2 tile_2=4 role=tiled block=0\n");
}

static void test_splits(void) {
    check("a split by hand", LOOPS("b", "'i'") ",['Split',['i','None',64],[1,0],['a','c']]", "",
          "2 split parts=2 factor_1=64 inner=64 innermost=64\n");
    check("None follows from a known extent",
          LOOPS("b", "'i'") "," TILE("i", "2", "'v','w'") ",['Split',['i','None',3],[1,0],['a','c']],"
                                                          "['Split',['a',2,'None',2],[1,0],['d','e','f']]",
          "[1,[5,2]]",
          "3 split extent=10 parts=2 factor_0=4 factor_1=3 inner=3 innermost=3\n"
          "4 split extent=4 parts=3 factor_0=2 factor_1=1 factor_2=2 inner=2 innermost=2\n");
    check("factors in a list, null for None", LOOPS("b", "'i'") ",['Split',['i',[null,8]],[1,0],['a','c']]", "",
          "2 split parts=2 factor_1=8 inner=8 innermost=8\n");
    check("eight factors", LOOPS("b", "'i'") ",['Split',['i',2,1,1,1,1,1,3,5],[1,0],['a','c','d','e','f','g','h','z']]",
          "",
          "2 split extent=30 parts=8 factor_0=2 factor_1=1 factor_2=1 factor_3=1 factor_4=1 factor_5=1 inner=15 "
          "innermost=5\n");
    check("a split of an unknown loop", "['Split',['nowhere',2,3],[1,0],['a','c']],['Vectorize',['c'],[],[]]", "",
          "1 split extent=6 parts=2 factor_0=2 factor_1=3 inner=3 innermost=3\n2 vectorize extent=3\n");
    check("a split of nothing", "['Split',[],[],[]]", "", "1 split parts=0\n");
    check("factors that are no factors", LOOPS("b", "'i'") ",['Split',['i',-2,{},'q',1e999],[1,0],['a']]", "",
          "2 split parts=4\n");
    check(
        "SamplePartitionedTile",
        LOOPS("b", "'i'") ",['SamplePartitionedTile',['i'],[2,1,4],['v','w']],['Split',['i','v','w'],[1,0],['a','c']]",
        "[1,[3,8]]", "3 split extent=24 parts=2 factor_0=3 factor_1=8 inner=8 innermost=8\n");
    check("LoopPartition", LOOPS("b", "'i'") ",['LoopPartition',['i',2,'None'],[1],['a','c']],['Unroll',['a'],[],[]]",
          "", "2 loop_partition parts=2 factor_0=2\n3 unroll extent=2\n");
    check("the second cut of an axis is no cut of an axis",
          BLOCK("b", "g") ",['Annotate',['b','\\'SRS\\''],['meta_schedule.tiling_structure'],[]]," LOOPS(
              "b", "'i','j','k'") ",['Split',['i',2,4],[1,0],['a','c']],['Split',['j',8,2],[1,0],['d','e']],"
                                  "['Split',['c',2,2],[1,0],['f','g']]",
          "",
          "2 annotate_tiling structure=SRS\n4 split_s1 extent=8 parts=2 factor_0=2 factor_1=4 inner=4 innermost=4\n"
          "5 split_s0 extent=16 parts=2 factor_0=8 factor_1=2 inner=2 innermost=2\n"
          "6 split extent=4 parts=2 factor_0=2 factor_1=2 inner=2 innermost=2 class=spatial\n");
}

static void test_loops(void) {
    check("Parallel, Vectorize, Unroll of loops of unknown extent",
          LOOPS("b", "'i','j'") ",['Parallel',['i'],[],[]],['Vectorize',['j'],[],[]],['Unroll',['x'],[],[]]", "",
          "2 parallel\n3 vectorize\n4 unroll\n");
    check_tiled("Fuse",
                "['Fuse',['i0','j0','i1'],[1],['f']],['Fuse',['j3'],[1],['g']],['Fuse',['k1','i3'],[1],['h']],"
                "['Parallel',['f'],[],[]],['Split',['f',2,'None'],[1,0],['p','q']]",
                "",
                "11 fuse loops=3 extent=6 class=spatial\n12 fuse loops=1 extent=8 class=spatial\n"
                "13 fuse loops=2 extent=20\n14 parallel extent=6 class=spatial\n"
                "15 split extent=6 parts=2 factor_0=2 factor_1=3 inner=3 innermost=3 class=spatial\n");
    check("Fuse of loops that are not known", "['Fuse',['a','c'],[1],['f']],['Parallel',['f'],[],[]]", "",
          "1 fuse loops=2\n2 parallel\n");
    check("Fuse of nothing", "['Fuse',[],[1],['f']]", "", "1 fuse loops=0\n");
    check("Merge", LOOPS("b", "'i'") "," TILE("i", "1", "'v'") "," LOOPS("c", "'j'") ",['Merge',['i','j'],[],['m']]",
          "[1,[7]]", "4 merge loops=2 extent=7\n");
    check_tiled("AddUnitLoop around a loop and around a block",
                "['AddUnitLoop',['i0'],[],['u']],['AddUnitLoop',['b0'],[],['w']],['Reorder',['i0','u'],[],[]],"
                "['Unroll',['u'],[],[]]",
                "",
                "11 add_unit_loop role=tiled block=0\n12 add_unit_loop role=tiled block=0\n"
                "13 reorder loops=2 innermost=1 spatial_outer=12 spatial_inner=40 reduction_inner=4 tile_0=2 tile_1=6 "
                "tile_2=16 tile_3=4 tile_4=4 tile_5=40 role=tiled block=0\n14 unroll extent=1\n");
    check_tiled("a loop of one iteration counts for nothing, whatever its class",
                "['AddUnitLoop',['j3'],[],['u']],['CacheRead',['b0',[]],[1,'shared'],['r']],"
                "['ComputeAt',['r','k1'],[1,-1],[]]",
                "",
                "11 add_unit_loop role=tiled block=0\n12 cache_read role=tiled block=0 buffer=1 scope=shared\n"
                "13 compute_at role=cache block=0 location=7 depth=7 level=4 axis=0 class=reduction outer=3072 "
                "spatial_inner=40\n");
    check_tiled("Reorder of a loop that is gone forgets the order", "['Reorder',['i','j3','i0'],[],[]]", "",
                "11 reorder loops=3 role=tiled block=0\n");
    check("Reorder of loops of unknown class",
          LOOPS("b", "'i','j'") ",['Split',['j',2,8],[1,0],['a','c']],"
                                "['Reorder',['c','i','c'],[],[]]",
          "",
          "2 split extent=16 parts=2 factor_0=2 factor_1=8 inner=8 innermost=8\n"
          "3 reorder loops=3 role=other\n");
    check("Reorder of what is not a loop", "['Reorder',['x',3,['y'],null],[],[]]", "", "1 reorder loops=4\n");
}

static void test_blocks(void) {
    check_tiled("CacheRead, CacheWrite and blocks computed at loops",
                "['CacheRead',['b0',[]],[1,'shared'],['r']],['CacheWrite',['b0',['b0']],[0,'global'],['w']],"
                "['ComputeAt',['r','k0'],[1,-1],[]],['ReverseComputeAt',['w','j1'],[1,-1],[]]",
                "",
                "11 cache_read role=tiled block=0 buffer=1 scope=shared\n"
                "12 cache_write role=tiled block=0 buffer=0 scope=global\n"
                "13 compute_at role=cache block=0 location=4 depth=4 level=2 axis=0 class=reduction outer=192 "
                "spatial_inner=160\n"
                "14 reverse_compute_at role=cache block=0 location=3 depth=3 level=1 axis=0 class=spatial outer=12 "
                "spatial_inner=160\n");
    check_tiled("the loops around a block that was computed at a loop",
                "['CacheRead',['b0',[]],[1,'shared'],['r']],['ComputeAt',['r','i0'],[1,-1],[]],"
                "['GetLoops',['r'],[],['x','y','z']],['Unroll',['x'],[],[]],['Unroll',['y'],[],[]]",
                "",
                "11 cache_read role=tiled block=0 buffer=1 scope=shared\n"
                "12 compute_at role=cache block=0 location=0 depth=0 level=0 axis=1 class=spatial outer=2 "
                "spatial_inner=960\n"
                "14 unroll extent=2 class=spatial\n15 unroll\n");
    check_tiled("GetConsumers gives the cache back, and the loops are the same when looked up again",
                "['CacheWrite',['b0',[]],[0,'global'],['w']],['GetConsumers',['b0'],[],['c']],"
                "['ReverseComputeAt',['c','j1'],[1,-1],[]],"
                "['GetLoops',['b0'],[],['a','d','e','f','g','h','m','n','o','p']],['Vectorize',['p'],[],[]]",
                "",
                "11 cache_write role=tiled block=0 buffer=0 scope=global\n"
                "13 reverse_compute_at role=cache block=0 location=3 depth=3 level=1 axis=0 class=spatial outer=12 "
                "spatial_inner=160\n15 vectorize extent=8 class=spatial\n");
    {
        /* The padding is looked up first, so it comes before the product in the program. */
        static char all[8192], wanted[8192];
        snprintf(all, sizeof all, "%s,%s,%s", BLOCK("p", "pad"), tiled,
                 "['SampleComputeLocation',['p'],[],['l']],['ComputeAt',['p','l'],[1,-1],[]]");
        walk(all, "[4,[2,3,4,5]],[6,[1,2,1,8]],[8,[16,4]],[11,2]", 1);
        const char *last = strstr(text, "13 ");
        snprintf(wanted, sizeof wanted,
                 "13 compute_at role=producer block=1 location=2 depth=2 level=1 axis=1 "
                 "class=spatial outer=6 spatial_inner=320\n");
        CHECK(last && strcmp(last, wanted) == 0, "a sampled place counts the tiled block's loops");
        walk(all, "[4,[2,3,4,5]],[6,[1,2,1,8]],[8,[16,4]],[11,10]", 1);
        last = strstr(text, "13 ");
        CHECK(last && strcmp(last, "13 compute_at role=producer block=1 location=10\n") == 0,
              "a sampled place that the tiled block has no loop for");
    }
    check("a place at the root, inline, beyond the loops, not decided, and none",
          BLOCK("p", "pad") ",['SampleComputeLocation',['p'],[],['l']],['ComputeAt',['p','l'],[1,-1],[]],"
                            "['SampleComputeLocation',['p'],[],['m']],['ComputeAt',['p','m'],[1,-1],[]],"
                            "['SampleComputeLocation',['p'],[],['n']],['ComputeAt',['p','n'],[1,-1],[]],"
                            "['SampleComputeLocation',['p'],[],['o']],['ComputeAt',['p','o'],[1,-1],[]],['ComputeAt',['"
                            "p'],[1,-1],[]],"
                            "['SampleComputeLocation',['p'],[],['q']],['ComputeAt',['p','q'],[1,-1],[]]",
          "[1,-1],[3,-2],[5,7],[10,-3]",
          "3 compute_at role=other block=0 location=-1\n5 compute_at role=other block=0 location=-2\n"
          "7 compute_at role=other block=0 location=7\n9 compute_at role=other block=0\n"
          "10 compute_at role=other block=0\n12 compute_at role=other block=0\n");
    check(
        "inlining, and the roles of blocks before and behind the tiled one",
        BLOCK("p", "pad") "," BLOCK("m", "mm") "," BLOCK("e", "relu") "," BLOCK(
            "r",
            "root") ",['ComputeInline',['p'],[],[]],['ReverseComputeInline',['e'],[],[]],['ComputeInline',['r'],[],[]],"
                    "['ComputeInline',['m'],[],[]],['ComputeInline',['x'],[],[]],"
                    "['Annotate',['m','\\'SSRSRS\\''],['meta_schedule.tiling_structure'],[]]",
        "",
        "5 compute_inline role=producer block=2\n6 reverse_compute_inline role=consumer block=0\n"
        "7 compute_inline role=root\n8 compute_inline role=tiled block=1\n9 compute_inline\n"
        "10 annotate_tiling structure=SSRSRS\n");
    check("older traces say GetBlock; a block looked up twice is one block",
          "['GetBlock',[],['mm','main'],['b0']],['GetBlock',[],['mm','main'],['b1']],['GetBlock',[],['mm'],['b2']],"
          "['ComputeInline',['b1'],[],[]],['ComputeInline',['b2'],[],[]]",
          "", "4 compute_inline role=other block=1\n5 compute_inline role=other block=0\n");
    check(
        "producers, consumers, children, outputs",
        BLOCK(
            "m",
            "mm") ",['GetProducers',['m'],[],['p','q']],['GetConsumers',['m'],[],['c']],"
                  "['GetChildBlocks',['m'],[],['d']],['GetOutputBlocks',['m'],[],['o']],['ComputeInline',['q'],[],[]],"
                  "['ComputeInline',['c'],[],[]],['ComputeInline',['d'],[],[]],['ComputeInline',['o'],[],[]]",
        "",
        "6 compute_inline role=producer block=0\n7 compute_inline role=consumer block=0\n8 compute_inline role=other\n"
        "9 compute_inline role=other\n");
}

static void test_reductions(void) {
    check("RFactor tells which loop is a reduction, also before it happens",
          BLOCK("s", "sum") "," LOOPS("s", "'i','j','k'") ",['Fuse',['j','k'],[1],['f']]," TILE(
              "f", "2", "'v','w'") ",['Split',['f','v','w'],[1,0],['a','c']],['RFactor',['c'],[1],['r']],['"
                                   "GetProducers',['s'],[],['p']],"
                                   "['ComputeAt',['p','i'],[1,-1],[]],['ComputeInline',['s'],[],[]],['"
                                   "DecomposeReduction',['r','a'],[],['d']]",
          "[3,[8,4]]",
          "3 fuse loops=2 class=reduction\n"
          "5 split_r0 extent=32 parts=2 factor_0=8 factor_1=4 inner=4 innermost=4\n"
          "6 rfactor role=reduction block=0 extent=4 part=1 rest=8 factor_axis=1\n"
          "8 compute_at role=rfactor block=0 location=0 depth=0 spatial_inner=1\n9 compute_inline role=reduction "
          "block=0\n"
          "10 decompose_reduction role=rfactor block=0 location=1 depth=1 level=0 axis=0 class=reduction "
          "spatial_inner=1\n");
    check("RFactor of an unknown loop", "['RFactor',['x'],[2],['r']],['ComputeInline',['r'],[],[]]", "",
          "1 rfactor factor_axis=2\n2 compute_inline role=rfactor\n");
    check_tiled("DecomposeReduction at a loop", "['DecomposeReduction',['b0','i1'],[],['d']]", "",
                "11 decompose_reduction role=tiled block=0 location=2 depth=2 level=1 axis=1 class=spatial outer=6 "
                "spatial_inner=320\n");
    check_tiled("DecomposePadding", "['DecomposePadding',['b0','i0'],[],['d']]", "",
                "11 decompose_padding role=tiled block=0 location=0 depth=0 level=0 axis=1 class=spatial outer=2 "
                "spatial_inner=960\n");
    check("FuseReductionEpilogue", BLOCK("s", "sum") "," BLOCK("e", "add") ",['FuseReductionEpilogue',['s','e'],[],[]]",
          "", "3 fuse_reduction_epilogue role=other block=1\n");
}

static void test_other_kinds(void) {
#define ONE(instruction) BLOCK("b", "x") "," instruction
    check("CacheInplace, CacheIndex",
          ONE("['CacheInplace',['b'],[1,'local'],['c','d']],['CacheIndex',['b'],['global',2],['e']],"
              "['ComputeInline',['d'],[],[]]"),
          "",
          "2 cache_inplace role=other block=0 buffer=1 scope=local\n3 cache_index role=other block=0 scope=global "
          "threshold=2\n4 compute_inline role=cache block=0\n");
    check("ReindexCacheRead, ReindexCacheWrite, ReIndex",
          ONE("['ReindexCacheRead',['b','{}'],[1,'shared'],['c']],['ReindexCacheWrite',['b','lambda i: i'],[0,'local'],"
              "['d']],['ReIndex',['b'],[2,1],['e']]"),
          "",
          "2 reindex_cache_read role=other block=0 buffer=1 scope=shared\n"
          "3 reindex_cache_write role=other block=0 buffer=0 scope=local\n4 reindex role=other block=0 buffer=2 "
          "write=1\n");
    check_tiled("ReadAt, WriteAt",
                "['ReadAt',['k0','b0'],[1,'shared'],['c']],['WriteAt',['i0','b0'],[0,'local'],['d']]", "",
                "11 read_at role=tiled block=0 location=4 depth=4 level=2 axis=0 class=reduction outer=192 "
                "spatial_inner=160 buffer=1 scope=shared\n"
                "12 write_at role=tiled block=0 location=0 depth=0 level=0 axis=1 class=spatial outer=2 "
                "spatial_inner=960 buffer=0 scope=local\n");
    check("PadEinsum", ONE("['PadEinsum',['b'],[[16,1,8]],[]]"), "",
          "2 pad_einsum padding_0=16 padding_1=1 padding_2=8 role=other block=0\n");
    check("StorageAlign", ONE("['StorageAlign',['b'],[0,-2,32,8],[]]"), "",
          "2 storage_align role=other block=0 buffer=0 axis=-2 factor=32 offset=8\n");
    check("SetScope, UnsafeSetDType",
          ONE("['SetScope',['b'],[0,'shared.dyn'],[]],['UnsafeSetDType',['b'],[1,'float16'],[]]"), "",
          "2 set_scope role=other block=0 buffer=0 scope=shared.dyn\n3 unsafe_set_dtype role=other block=0 buffer=1 "
          "dtype=float16\n");
    check("UnsafeHideBufferAccess", ONE("['UnsafeHideBufferAccess',['b','\\'read\\'',[0,1]],[],[]]"), "",
          "2 unsafe_hide_buffer_access access=read buffers=2 role=other block=0\n");
    check_tiled(
        "Blockize, Tensorize",
        "['Blockize',['i3'],[1],['c']],['Tensorize',['b0'],['dot_4x4',1],[]],['Tensorize',['i3'],['mma',1],[]]", "",
        "11 blockize role=tiled block=0 location=8 depth=8 level=5 axis=1 class=spatial outer=15360 spatial_inner=8\n"
        "12 tensorize role=tiled block=0 intrin=dot_4x4\n"
        "13 tensorize role=tiled block=0 location=8 depth=8 level=5 axis=1 class=spatial outer=15360 spatial_inner=8 "
        "intrin=mma\n");
    check("TransformLayout, TransformBlockLayout",
          ONE("['TransformLayout',['b','{\\'root_index\\': "
              "1}'],[2,0,null,false],[]],['TransformBlockLayout',['b'],['{}'],[]]"),
          "",
          "2 transform_layout role=other block=0 buffer=2 write=0 injective=0\n3 transform_block_layout role=other "
          "block=0\n");
    check("SetAxisSeparator", ONE("['SetAxisSeparator',['b'],[0,1,[2,3]],[]],['SetAxisSeparator',['b',[1]],[0,1],[]]"),
          "",
          "2 set_axis_separator separator_0=2 separator_1=3 role=other block=0 buffer=0 write=1\n"
          "3 set_axis_separator separator_0=1 role=other block=0 buffer=0 write=1\n");
    check("ReorderBlockIterVar", ONE("['ReorderBlockIterVar',['b',[0,2,1]],[],[]]"), "",
          "2 reorder_block_iter_var axes=3 moved=2 role=other block=0\n");
    check("RollingBuffer", ONE("['RollingBuffer',['b'],[1],[]]"), "", "2 rolling_buffer role=other block=0 buffer=1\n");
    check("AnnotateBufferAccess", ONE("['AnnotateBufferAccess',['b',1,0,'lambda i: i'],[],[]]"), "",
          "2 annotate_buffer_access buffer=1 write=0 role=other block=0\n");
    check(
        "attributes of a wrong sort are left out",
        ONE("['SetScope',['b'],['global',0],[]],['StorageAlign',['b'],[null,{},[1],'x'],[]],['PadEinsum',['b'],[7],[]],"
            "['RollingBuffer',[[]],[],[]],['Annotate',[],[],[]],['Unannotate',[],[3],[]],['GetSBlock',[],[5],['q']],"
            "['ComputeInline',['q'],[],[]]"),
        "",
        "2 set_scope role=other block=0\n3 storage_align role=other block=0\n4 pad_einsum role=other block=0\n"
        "5 rolling_buffer\n6 annotate\n7 unannotate\n9 compute_inline role=other\n");
#undef ONE
}

static void test_annotations(void) {
    check("annotations that steer the post-processing",
          BLOCK("r", "root") ",['Annotate',['r',32],['meta_schedule.parallel'],[]],"
                             "['Annotate',['r',64],['meta_schedule.vectorize'],[]],"
                             "['SampleCategorical',[],[[0,16,64,512],[0.25,0.25,0.25,0.25]],['v']],"
                             "['Annotate',['r','v'],['meta_schedule.unroll_explicit'],[]],"
                             "['Annotate',['r','v'],['meta_schedule.unroll_implicit'],[]]",
          "[3,2]",
          "2 annotate_parallel value=32\n3 annotate_vectorize value=64\n5 annotate_unroll explicit=1 value=64\n"
          "6 annotate_unroll explicit=0 value=64\n");
    check("values that are not decided, or not there",
          BLOCK("r", "root") ",['SampleCategorical',[],[[0,16]],['v']],['Annotate',['r','v'],['meta_schedule."
                             "unroll_explicit'],[]],['SampleCategorical',[],[[0,16]],['w']],['Annotate',['r','w'],['"
                             "meta_schedule."
                             "unroll_explicit'],[]],['SampleCategorical',[],['x'],['w']]",
          "[3,2],[5,0]", "3 annotate_unroll explicit=1\n5 annotate_unroll explicit=1\n");
    check_tiled(
        "any other annotation: number, text, list, truth, of a block or a loop",
        "['Annotate',['b0',1],['k1'],[]],['Annotate',['b0','\\'t u\\''],['k2'],[]],"
        "['Annotate',['j3',[0,0,1.5]],['software_pipeline_stage'],[]],['Annotate',['j3',true],['k3'],[]],"
        "['Annotate',['b0',{'a':1}],['k4'],[]],['Annotate',['b0',['x']],['k5'],[]],['Unannotate',['b0'],['k1'],[]]",
        "",
        "11 annotate key=k1 role=tiled block=0 value=1\n12 annotate key=k2 role=tiled block=0 value_text=t u\n"
        "13 annotate key=software_pipeline_stage extent=8 class=spatial value_text=0,0,1.5\n"
        "14 annotate key=k3 extent=8 class=spatial value=1\n15 annotate key=k4 role=tiled block=0\n"
        "16 annotate key=k5 role=tiled block=0\n17 unannotate key=k1 role=tiled block=0\n");
}

static void test_postproc(void) {
    static char cut[sizeof text];
    const char *before = "['GetSBlock',[],['s','main'],['s']],['GetLoops',['s'],[],['i','k']],"
                         "['Split',['k',4,8],[1,0],['a','c']]";
    char whole[2048];
    snprintf(whole, sizeof whole, "%s,['EnterPostproc',[],[],[]],['RFactor',['a'],[1],['r']],['Mystery',[],[],[]]",
             before);
    CHECK(walk(before, "", 0) == 0, "a trace cut before EnterPostproc");
    CHECK(strcmp(text, "3 split extent=32 parts=2 factor_0=4 factor_1=8 inner=8 innermost=8\n3 postprocess\n") == 0,
          "gets a postprocess");
    snprintf(cut, sizeof cut, "%.*s", (int)(strlen(text) - strlen("3 postprocess\n")), text);
    CHECK(walk(whole, "", 0) == 1 && strncmp(text, cut, strlen(cut)) == 0 &&
              strcmp(text + strlen(cut), "6 postprocess\n") == 0,
          "the whole trace gives the same actions, and postprocess counts all instructions");
    CHECK(walk(whole, "", 1) == 1 && strncmp(text, cut, strlen(cut)) == 0 &&
              strcmp(text + strlen(cut), "5 rfactor role=reduction block=0 extent=4 part=0 rest=8 factor_axis=1\n") ==
                  0,
          "the full trace goes on, with the same start");
    CHECK(walk("['A',[],[],[]],['GetLoops2',['x'],[{}],['y']],['',[],[],[]]", "", 0) == 3 &&
              strcmp(text, "3 postprocess\n") == 0,
          "unknown kinds are counted");
}

/* The last action of the tiled product and more instructions. */
static void check_summary(const char *name, const char *instructions, const char *expected) {
    static char all[8192];
    snprintf(all, sizeof all, "%s%s", tiled, instructions);
    walk(all, tiled_decisions, 0);
    const char *last = strstr(text, "postprocess");
    if (!CHECK(last && strcmp(last, expected) == 0, "%s", name))
        printf("# got:\n%s# expected:\n%s", text, expected);
}

#define PRODUCTS                                                                                                       \
    "postprocess within_1=61440 spatial_1=960 axis_0_1=16 axis_1_1=60 axis_2_1=1 axis_3_1=1 row_1=1024 column_1=3840 " \
    "within_2=10240 row_2=512 column_2=1280 within_3=640 spatial_3=160 axis_0_3=8 axis_1_3=20 axis_2_3=1 axis_3_3=1 "  \
    "row_3=32 column_3=80 within_4=160 row_4=32 column_4=20 row_5=8 column_5=5 power=8 power_inner=8"
#define ANNOTATE(key, value)                                                                                           \
    ",['GetSBlock',[],['root','main'],['r']],['Annotate',['r'," value "],['meta_schedule." key "'],[]]"
#define PARALLEL(limit)      ANNOTATE("parallel", limit)
#define BODY(vector, unroll) ANNOTATE("vectorize", vector) ANNOTATE("unroll_explicit", unroll)

static void test_summary(void) {
    check_summary("what the nest has become", "", PRODUCTS "\n");
    check_summary("parallel loops up to the one beyond the annotation", PARALLEL("3"),
                  PRODUCTS " parallel=6 parallel_power=2\n");
    check_summary("an annotation that is just reached takes one loop more", PARALLEL("6"),
                  PRODUCTS " parallel=12 parallel_power=4\n");
    check_summary("parallel loops end at a reduction", PARALLEL("100"), PRODUCTS " parallel=12 parallel_power=4\n");
    check_summary("parallel loops end where another block is computed",
                  PARALLEL("100") ",['GetSBlock',[],['c','main'],['c']],['ReverseComputeAt',['c','j0'],[1,-1],[]]",
                  PRODUCTS " parallel=2 parallel_power=2\n");
    check_summary("one vector, and room for the tile and the reduction around it", BODY("64", "64"),
                  PRODUCTS
                  " vector=8 registers=5 unrolled=20 unrolled_spatial=5 unrolled_reduction=4 code=20 room_5=13 "
                  "room_4=3.25 room_3=0.8125\n");
    check_summary("too long for a vector, so a loop like others", BODY("4", "64"),
                  PRODUCTS " vector=1 registers=40 unrolled=40 unrolled_spatial=40 unrolled_reduction=1 code=40 "
                           "room_5=1.625 room_4=0.40625 room_3=0.1015625\n");
    check_summary("both annotations just reached", BODY("8", "20"),
                  PRODUCTS
                  " vector=8 registers=5 unrolled=20 unrolled_spatial=5 unrolled_reduction=4 code=20 room_5=4.2 "
                  "room_4=1.05 room_3=0.2625\n");
    check_summary("vectors without unrolling", ANNOTATE("vectorize", "64"), PRODUCTS " vector=8 registers=5\n");
    check_summary("unrolling without vectors is not what MetaSchedule does", ANNOTATE("unroll_explicit", "64"),
                  PRODUCTS "\n");
    check_summary("nothing unrolled", BODY("64", "0"),
                  PRODUCTS " vector=8 registers=5 unrolled=1 unrolled_spatial=1 unrolled_reduction=1 code=1 room_5=0.2 "
                           "room_4=0.05 room_3=0.0125\n");
    check_summary("loops of an unknown order", ",['Reorder',['i','j3','i0'],[],[]]", "postprocess\n");
    check_summary("a loop that the walk cannot place", ",['Split',['j3',2,4],[1,0],['x','y']]", PRODUCTS "\n");
    check_summary("two tiled blocks",
                  ",['GetSBlock',[],['d','main'],['d']],"
                  "['Annotate',['d','\\'SRS\\''],['meta_schedule.tiling_structure'],[]]",
                  "postprocess\n");
}

static void test_hostile(void) {
    check(
        "variables of another sort",
        BLOCK("b", "x") "," LOOPS(
            "b", "'l'") ",['SampleCategorical',[],[[3]],['v']],"
                        "['Split',['b','l','v'],[1,0],['p']],['ComputeAt',['l','b'],[],[]],['Fuse',['b','v'],[],['f']],"
                        "['ComputeInline',['v'],[],[]],['GetLoops',['l'],[],['b']],['Vectorize',['b'],[],[]],['RFactor'"
                        ",['v'],[],[]],"
                        "['Annotate',['v','b'],['k'],[]]",
        "[2,0]",
        "4 split parts=2 factor_1=3 inner=3 innermost=3\n5 compute_at\n6 fuse loops=2\n7 compute_inline\n9 vectorize\n"
        "10 rfactor\n11 annotate key=k\n");
    check("a block computed at its own loop",
          BLOCK("b", "x") "," LOOPS("b", "'l'") ",['ComputeAt',['b','l'],[],[]]," LOOPS(
              "b", "'m','n'") ",['Vectorize',['m'],[],[]]",
          "", "3 compute_at role=other block=0 location=0 depth=0 spatial_inner=1\n5 vectorize\n");
    check("loops of two blocks in one instruction",
          LOOPS("b", "'i'") "," LOOPS("c", "'j'") ",['Reorder',['i','j'],[],[]],"
                                                  "['Fuse',['i','j'],[],['f']],['Unroll',['f'],[],[]]",
          "", "3 reorder loops=2 role=other\n4 fuse loops=2\n5 unroll\n");
    check("names of any bytes",
          "['GetLoops',['b'],[],['\\u0000','\\u0000a','']],['Split',['\\u0000a',2,2],[],['','x']],"
          "['Unroll',[''],[],[]],['Unroll',['\\u0000'],[],[]]",
          "", "2 split extent=4 parts=2 factor_0=2 factor_1=2 inner=2 innermost=2\n3 unroll extent=2\n4 unroll\n");
    check("extents beyond any number",
          LOOPS("b", "'i'") ",['Split',['i',1e200,1e200],[],['x','y']],"
                            "['Fuse',['x','y'],[],['f']],['Unroll',['f'],[],[]]",
          "", "2 split parts=2 factor_0=1e200 factor_1=1e200 inner=1e200 innermost=1e200\n3 fuse loops=2\n4 unroll\n");
}

/* The last line of what one trace gives without its post-processing. */
static void check_last(const char *name, const char *instructions, const char *decisions, const char *expected) {
    const size_t unknown = walk(instructions, decisions, 0), length = strlen(text), wanted = strlen(expected);
    if (!CHECK(unknown == 0 && length >= wanted && strcmp(text + length - wanted, expected) == 0, "%s", name))
        printf("# %zu unknown; got:\n%s# expected at the end:\n%s", unknown, text, expected);
}

/* A row of n axes is cut in a part for blocks, one for vthreads and one for threads. */
#define THREADS                                                                                                        \
    BLOCK("b", "g")                                                                                                    \
    "," LOOPS("b", "'i','j'") "," TILE("i", "3", "'v0','v1','v2'") ",['Split',['i','v0','v1','v2'],[1,0],"             \
                                                                   "['i0','i1','i2']]"
#define BIND(loop, thread) ",['Bind',['" loop "'],['" thread "'],[]]"

static void gpu(void) {
    check("cooperative fetch",
          BLOCK("b", "g") ",['CacheRead',['b',[]],[1,'shared'],['c']],"
                          "['SampleCategorical',[],[[1,2,3,4],[0.25,0.25,0.25,0.25]],['v']],"
                          "['Annotate',['c','v'],['meta_schedule.cooperative_fetch'],[]],"
                          "['CacheWrite',['b',[]],[0,'local'],['d']]",
          "[2,3]",
          "2 cache_read role=other block=0 buffer=1 scope=shared\n4 annotate_fetch role=cache block=0 value=4\n"
          "5 cache_write role=other block=0 buffer=0 scope=local\n");
    check_last("what is bound to a GPU's threads",
               THREADS BIND("i0", "blockIdx.x") BIND("i1", "vthread.x") BIND("i2", "threadIdx.x"), "[2,[5,2,32]]",
               "7 postprocess blocks=5 vthreads=2 threads=32\n");
    check_last("the x, y and z of threads are multiplied",
               THREADS BIND("i0", "threadIdx.z") BIND("i1", "threadIdx.y") BIND("i2", "threadIdx.x"), "[2,[5,2,32]]",
               "7 postprocess threads=320\n");
    check_last("of several loops bound to one axis the largest counts",
               THREADS BIND("i0", "threadIdx.x") BIND("i2", "threadIdx.x") BIND("i1", "vthread"), "[2,[5,2,32]]",
               "7 postprocess vthreads=2 threads=32\n");
    check_last("an unknown extent leaves the product out",
               THREADS BIND("i0", "blockIdx.x") BIND("j", "threadIdx.x") BIND("i2", "threadIdx.y"), "[2,[5,2,32]]",
               "7 postprocess blocks=5\n");
    check_last("an unknown one beside a known one of the same axis",
               THREADS BIND("j", "threadIdx.x") BIND("i2", "threadIdx.x") BIND("", "blockIdx.x"), "[2,[5,2,32]]",
               "7 postprocess threads=32\n");
}

int main(void) {
    test_tiling();
    test_splits();
    test_loops();
    test_blocks();
    test_reductions();
    test_other_kinds();
    test_annotations();
    test_postproc();
    test_summary();
    test_hostile();
    gpu();
    return tap_done();
}
