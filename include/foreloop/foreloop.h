/*
 * foreloop: rank a compiler's candidate schedules without compiling or measuring them.
 *
 * The library runs a compiler world model (arXiv 2606.09312): a transformer encodes the program's text once into a
 * latent state z0 (section "Workloads"); every scheduling action moves the latent state by a TransH step (section
 * "Actions"); boosted trees, and in some models a small network beside them, score the end state together with
 * aggregates of the actions and with the hardware (section "Scoring"). The stages can be used on their own: tokenizer,
 * transformer, trees, tuning-record reader.
 *
 *     foreloop_model_open        once         the weights, immutable, shared by all threads
 *     foreloop_encoder_create    per thread   scratch of the transformer
 *     foreloop_workload_encode   per program  program text -> z0 (milliseconds)
 *     foreloop_actions_create    once         the table of distinct actions
 *     foreloop_actions_intern    per action   kind + named arguments -> small integer
 *     foreloop_scorer_create     per thread   scratch of the scoring
 *     foreloop_score             per batch    sequences of action ids -> scores, higher is faster
 *     foreloop_space_create      per sketch   the candidates around a trace of TVM: drawn, mutated, scored
 *
 * Rules that hold for every function, unless its own comment says otherwise:
 *
 *   Errors     Functions that can fail return a foreloop_status and fill `error`, which may be NULL. On failure no
 *              output argument is touched and nothing is owned by the caller. Handles are written only on success.
 *   Arguments  A NULL pointer where an object or an array of more than zero elements is needed gives
 *              FORELOOP_ERROR_ARGUMENT. Closing a NULL handle does nothing.
 *   Text       Pairs of pointer and byte length; not terminated, may hold any byte. Paths and names that are plain
 *              `const char *` are terminated.
 *   Structs    A struct that the caller fills begins with `size`. Its init function zeroes it, sets the size and the
 *              defaults. Fields that the caller's older header lacks take their defaults.
 *   Threads    Objects are either immutable (model, transformer, tokenizer, gbdt, workload: shared freely) or belong
 *              to one thread at a time (encoder, encoding, scorer, records, space). An action table is shared by
 *              scorers while nobody interns into it.
 *   Lifetime   An object that is created from another borrows it: close the borrower first.
 *   Memory     All memory comes from the allocator of the options, copied at creation; borrowers use the allocator of
 *              what they borrow. NULL stands for malloc and free. Files are mapped read-only unless the options say
 *              otherwise; a mapped file must not be truncated or changed while it is open.
 *   Process    No global state, printing, abort, exit, signals; no threads but those of a foreloop_thread_pool; locale,
 *              environment and floating-point mode are neither read nor changed (the default rounding mode is assumed).
 *              Handles survive fork.
 *   Costs      Said in the comments, in terms of the inputs; where nothing is said, a call costs what it copies or
 *              compares, as names, sizes, init functions and the closing of handles do.
 *   Numbers    Same input, same bits: whatever the batch, its order, the thread or the memory's alignment.
 *              Libraries built with -Dgemm=openblas or onednn keep this, and what is said of allocation, for all
 *              but the encoder in float32.
 */
#ifndef FORELOOP_FORELOOP_H
#define FORELOOP_FORELOOP_H

#include <foreloop/version.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(FORELOOP_SHARED)
#define FORELOOP_API __declspec(dllimport)
#elif defined(__GNUC__)
#define FORELOOP_API __attribute__((visibility("default")))
#else
#define FORELOOP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status, errors, memory -------------------------------------------------------------------------------------- */

typedef enum foreloop_status {
    FORELOOP_OK = 0,
    FORELOOP_END = 1,               /* a stream has no further item; not an error */
    FORELOOP_ERROR_ARGUMENT = 2,    /* the call itself is wrong: NULL, zero, out of range, handle of another model */
    FORELOOP_ERROR_MEMORY = 3,      /* the allocator returned NULL */
    FORELOOP_ERROR_IO = 4,          /* a file cannot be opened, read or mapped */
    FORELOOP_ERROR_FORMAT = 5,      /* malformed data; the error's position says where */
    FORELOOP_ERROR_UNSUPPORTED = 6, /* well-formed, but something this library does not do; named in the message */
    FORELOOP_ERROR_MISMATCH = 7,    /* parts that do not fit each other: tensor shapes, feature names, fingerprints */
    FORELOOP_ERROR_LIMIT = 8,       /* a stated bound is reached: table full, text too long, buffer too small */
    FORELOOP_ERROR_VALUE = 9,       /* a number that is NaN, infinite or out of its range where that is not allowed */
    FORELOOP_ERROR_DEVICE = 10      /* a GPU, its driver or a library for it is missing, or failed (foreloop/cuda.h) */
} foreloop_status;

/* What `foreloop_error.position` counts. */
typedef enum foreloop_position {
    FORELOOP_POSITION_NONE = 0,
    FORELOOP_POSITION_BYTE = 1, /* byte offset from 0 */
    FORELOOP_POSITION_LINE = 2  /* line number from 1 */
} foreloop_position;

/* Filled by the library on failure, untouched on success. `message` is one line of UTF-8: what is wrong, where, and
 * how to mend it. It holds no data of the caller beyond short quoted names. */
typedef struct foreloop_error {
    foreloop_status code;
    foreloop_position position_kind;
    uint64_t position;
    char message[496];
} foreloop_error;

/* `allocate` returns memory of `size` > 0 bytes aligned to `alignment` (a power of two, at most 64), or NULL. `release`
 * gets a pointer that `allocate` returned, never NULL. Both may be called from every thread that calls the library. */
typedef struct foreloop_allocator {
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *pointer);
    void *user;
} foreloop_allocator;

/* The version of the linked library, "major.minor.patch". */
FORELOOP_API const char *foreloop_version(void);

/* The constant's name without its prefix in lower case, such as "error_format"; "unknown" for other values. */
FORELOOP_API const char *foreloop_status_name(foreloop_status status);

/* Instruction sets of the kernels. Each machine runs the highest tier that it has and the caller allows. */
typedef enum foreloop_tier {
    FORELOOP_TIER_BEST = 0,  /* in options: no limit */
    FORELOOP_TIER_REF = 1,   /* plain C, every machine */
    FORELOOP_TIER_AVX2 = 2,  /* AVX2, FMA, BMI1, BMI2, F16C */
    FORELOOP_TIER_AVX512 = 3 /* and AVX-512 F, BW, DQ, VL */
} foreloop_tier;

/* "ref", "avx2", "avx512"; "unknown" for other values. */
FORELOOP_API const char *foreloop_tier_name(foreloop_tier tier);
/* The highest tier of this machine. */
FORELOOP_API foreloop_tier foreloop_tier_detect(void);

struct foreloop_options;

/* Instruction sets that kernels choose among on top of a tier, as bits to be joined by |. */
typedef enum foreloop_cpu_feature {
    FORELOOP_CPU_AVX2 = 1 << 0,        /* the tier of that name */
    FORELOOP_CPU_AVX512 = 1 << 1,      /* the tier of that name */
    FORELOOP_CPU_AVX_VNNI = 1 << 2,    /* integer dot products in 256-bit registers */
    FORELOOP_CPU_AVX512_VNNI = 1 << 3, /* and in 512-bit registers */
    FORELOOP_CPU_AVX512_BF16 = 1 << 4, /* dot products of bfloat16 */
    FORELOOP_CPU_AMX_BF16 = 1 << 5,    /* matrix tiles of bfloat16 */
    FORELOOP_CPU_AMX_INT8 = 1 << 6     /* matrix tiles of bytes */
} foreloop_cpu_feature;

/* "avx2", "avx512", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"; "unknown" for other values. */
FORELOOP_API const char *foreloop_cpu_feature_name(foreloop_cpu_feature feature);
/* The features whose instructions this machine has and whose registers the operating system saves. */
FORELOOP_API unsigned foreloop_cpu_features_detect(void);
/* Those that objects opened with these options use (NULL: the defaults): within the options' limits, and left out where
 * they are present but slower here than what they would replace. Asks for AMX as opening does. */
FORELOOP_API unsigned foreloop_cpu_features_chosen(const struct foreloop_options *options);

/* What an encoder multiplies by its weights in. Embeddings, attention, normalisation and all sums over layers stay in
 * float32. Files may hold their weights in float32, float16 or bfloat16 with each of them. docs/NUMERICS.md tells what
 * each promises about bits, and its error. */
typedef enum foreloop_precision {
    FORELOOP_PRECISION_F32 = 0,
    FORELOOP_PRECISION_BF16 = 1,    /* weights and inputs of each product rounded to bfloat16, sums in float32: half the
                                       memory; cosine to f32 at least 0.9999 */
    FORELOOP_PRECISION_INT8 = 2,    /* weights in 8 bits by channel and 64 inputs, inputs in 8 bits by row and 64
                                       inputs, exact integer sums: 0.28 of the memory; cosine at least 0.999 */
    FORELOOP_PRECISION_INT8_ROW = 3 /* one scale for a channel and one for a row: faster; cosine at least 0.997 */
} foreloop_precision;

/* "f32", "bf16", "int8", "int8_row"; "unknown" for other values. */
FORELOOP_API const char *foreloop_precision_name(foreloop_precision precision);

/* Options of every function that opens a file or creates an object on its own. */
typedef struct foreloop_options {
    size_t size;
    const foreloop_allocator *allocator; /* NULL: malloc and free; copied, so it need not outlive the call */
    int read_into_memory;                /* 1: read files instead of mapping them */
    foreloop_tier tier;                  /* the highest that may be used */
    foreloop_precision precision;        /* of the encoder */
    unsigned cpu_features_off; /* bits of foreloop_cpu_feature that may not be used, nor what builds on them */
    /* 1: use AMX where it pays. Linux grants its registers to the whole process, for good and with larger signal
     * frames, so a library does not ask for them unasked; where they are refused, the next best kernels run. */
    int use_amx;
} foreloop_options;
FORELOOP_API void foreloop_options_init(foreloop_options *options, size_t size);

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

/* The caller's threads: `run` calls task(argument, i) once for each i from 0 to count - 1, on any threads and in any
 * order, and returns when all calls have returned. */
typedef struct foreloop_parallel_for {
    void (*run)(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument);
    void *user;
} foreloop_parallel_for;

/* Threads of the library's own, for hosts that have none to lend. */
typedef struct foreloop_thread_pool foreloop_thread_pool;

/* Starts threads - 1 threads, 1 to 1024 with the caller of a run, which takes part. They take no signals. Errors:
 * LIMIT when the system starts fewer. */
FORELOOP_API foreloop_status foreloop_thread_pool_create(foreloop_thread_pool **pool, size_t threads,
                                                         const foreloop_options *options, foreloop_error *error);
/* Ends the threads. Close first what the pool was lent to. */
FORELOOP_API void foreloop_thread_pool_close(foreloop_thread_pool *pool);
/* The pool as a parallel-for, borrowed. It may be lent to several objects: while it runs for one, and inside a task,
 * and in a process that was forked since, all of another run is done by the calling thread. */
FORELOOP_API const foreloop_parallel_for *foreloop_thread_pool_parallel(const foreloop_thread_pool *pool);

/* ---- Tokenizer --------------------------------------------------------------------------------------------------- */

/* Byte-level BPE (GPT-2, RoBERTa, CodeBERT) or WordPiece (BERT). Immutable. */
typedef struct foreloop_tokenizer foreloop_tokenizer;

/* One tokenised text: results and scratch, reused from text to text. Belongs to one thread. */
typedef struct foreloop_encoding foreloop_encoding;

/* Opens a Hugging Face tokenizer.json. Errors: IO; FORMAT with the byte
 * offset; UNSUPPORTED, naming the component (normalizer, pre-tokenizer, model, post-processor) that this library does
 * not know. */
FORELOOP_API foreloop_status foreloop_tokenizer_open(foreloop_tokenizer **tokenizer, const char *path,
                                                     const foreloop_options *options, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_tokenizer_open_memory(foreloop_tokenizer **tokenizer, const void *data,
                                                            size_t size, const foreloop_options *options,
                                                            foreloop_error *error);

/* Of the older files that a tokenizer may come in; zeros are what GPT-2, RoBERTa and uncased BERT have. */
typedef enum foreloop_accents {
    FORELOOP_ACCENTS_BY_CASE = 0, /* stripped unless the case is kept */
    FORELOOP_ACCENTS_STRIP = 1,
    FORELOOP_ACCENTS_KEEP = 2
} foreloop_accents;
typedef struct foreloop_vocabulary_options {
    size_t size;
    const foreloop_allocator *allocator;
    int read_into_memory;
    foreloop_tier tier;
    int add_prefix_space;     /* BPE: a blank before text that begins with none */
    int keep_case;            /* WordPiece: 1: no lower case */
    foreloop_accents accents; /* WordPiece */
    int join_chinese;         /* WordPiece: 1: Chinese characters are not words of their own */
} foreloop_vocabulary_options;
FORELOOP_API void foreloop_vocabulary_options_init(foreloop_vocabulary_options *options, size_t size);

/* Opens vocab.json and merges.txt of a byte-level BPE: with the special tokens of RoBERTa when the vocabulary has <s>
 * and </s>, else without, as GPT-2. Errors: as above; FORMAT with the line of a malformed merge. Cost: linear in the
 * files. */
FORELOOP_API foreloop_status foreloop_tokenizer_open_bpe(foreloop_tokenizer **tokenizer, const char *vocabulary,
                                                         const char *merges, const foreloop_vocabulary_options *options,
                                                         foreloop_error *error);
/* Opens a vocab.txt of BERT, one token a line; its special tokens [CLS] and [SEP] may not be missing (MISMATCH). Cost:
 * linear in the file. */
FORELOOP_API foreloop_status foreloop_tokenizer_open_wordpiece(foreloop_tokenizer **tokenizer, const char *vocabulary,
                                                               const foreloop_vocabulary_options *options,
                                                               foreloop_error *error);
FORELOOP_API void foreloop_tokenizer_close(foreloop_tokenizer *tokenizer);

/* The number of ids: the largest id of vocabulary and added tokens + 1. */
FORELOOP_API size_t foreloop_tokenizer_vocabulary_size(const foreloop_tokenizer *tokenizer);
/* The token's text as it stands in the vocabulary ("\xc4\xa0the" for " the"), or NULL for an id without a token. */
FORELOOP_API const char *foreloop_tokenizer_token(const foreloop_tokenizer *tokenizer, uint32_t id);
/* Looks a token up by its text as it stands in the vocabulary; returns 1 and writes the id, or 0. */
FORELOOP_API int foreloop_tokenizer_find(const foreloop_tokenizer *tokenizer, const char *token, uint32_t *id);

FORELOOP_API foreloop_status foreloop_encoding_create(foreloop_encoding **encoding, const foreloop_tokenizer *tokenizer,
                                                      foreloop_error *error);
FORELOOP_API void foreloop_encoding_close(foreloop_encoding *encoding);

/* Tokenises one text, with the special tokens of the post-processor when `add_special` is not 0, without truncation or
 * padding. Ids equal those of Hugging Face tokenizers' Tokenizer.encode. Invalid UTF-8: each maximal invalid prefix of
 * a sequence becomes one U+FFFD. The former content of `encoding` is lost, on failure too (it is empty then). Errors:
 * LIMIT when the text, or what the normalizer makes of it, exceeds 2 GiB; VALUE when the text needs the unknown token
 * and the vocabulary lacks it. Cost: linear in `length` for ordinary text; length x log length for one long word. */
FORELOOP_API foreloop_status foreloop_tokenize(foreloop_encoding *encoding, const char *text, size_t length,
                                               int add_special, foreloop_error *error);

/* What foreloop_tokenize_with does otherwise than tokenising the whole text with special tokens. */
typedef struct foreloop_tokenize_options {
    size_t size;
    int no_special;        /* 1: without the special tokens of the post-processor */
    int strict;            /* 1: text that is not UTF-8 is an error instead of being repaired */
    int as_file;           /* 1: truncation and padding as tokenizer.json asks for them; excludes window_length */
    size_t window_length;  /* 0, or windows of at most so many tokens, special ones included, that cover the text */
    size_t window_overlap; /* tokens of the text that neighbouring windows share; fewer than a window holds */
} foreloop_tokenize_options;
FORELOOP_API void foreloop_tokenize_options_init(foreloop_tokenize_options *options, size_t size);

/* The same with options (NULL: the defaults). Strict mode: FORMAT with the byte offset of the first byte that begins no
 * character. Windows: as Hugging Face's truncation, the first window is what the encoding's functions below give, all
 * are given by foreloop_encoding_window; VALUE when special tokens and overlap leave no room, UNSUPPORTED for a
 * template that repeats the text. Cost: as foreloop_tokenize; windows share the tokens of one pass. */
FORELOOP_API foreloop_status foreloop_tokenize_with(foreloop_encoding *encoding, const char *text, size_t length,
                                                    const foreloop_tokenize_options *options, foreloop_error *error);

/* The result, valid until the encoding's next use. `offsets` holds two numbers for each token: first byte and end byte
 * in the given text (0, 0 for special tokens that the post-processor added). */
FORELOOP_API size_t foreloop_encoding_count(const foreloop_encoding *encoding);
FORELOOP_API const uint32_t *foreloop_encoding_ids(const foreloop_encoding *encoding);
FORELOOP_API const size_t *foreloop_encoding_offsets(const foreloop_encoding *encoding);

/* One window: ids[count], offsets[2 * count] as above. Tokens before content_begin and from content_end on are padding
 * (offsets 0, 0). Returns 1, or 0 when there is no window of this number. There is one window unless options say
 * otherwise; truncation keeps what it cuts off as further windows. */
typedef struct foreloop_window {
    size_t size;
    const uint32_t *ids;
    const size_t *offsets;
    size_t count;
    size_t content_begin, content_end;
} foreloop_window;
FORELOOP_API size_t foreloop_encoding_window_count(const foreloop_encoding *encoding);
FORELOOP_API int foreloop_encoding_window(const foreloop_encoding *encoding, size_t index, foreloop_window *window);

/* Ids to text as the decoder of tokenizer.json puts it together, without special tokens when `skip_special` is not 0;
 * exact for byte-level BPE. Writes the text, not terminated, and its length; text NULL with capacity 0 writes the
 * length alone. Errors: VALUE for an id without a token; LIMIT when the text is longer than `capacity`; UNSUPPORTED,
 * naming a decoder that this library does not know. Cost: linear in ids and text. */
FORELOOP_API foreloop_status foreloop_tokenizer_decode(const foreloop_tokenizer *tokenizer, const uint32_t *ids,
                                                       size_t count, int skip_special, char *text, size_t capacity,
                                                       size_t *length, foreloop_error *error);

/* ---- Transformer ------------------------------------------------------------------------------------------------- */

/* A RoBERTa or BERT encoder with its tokenizer, window and pooling rule. Immutable. */
typedef struct foreloop_transformer foreloop_transformer;

/* The scratch of a transformer; grows to the longest window and stays. Belongs to one thread. */
typedef struct foreloop_encoder foreloop_encoder;

/* Opens a Hugging Face checkpoint as it lies: a directory with config.json, model.safetensors (f32, f16 or bf16) and
 * tokenizer.json, or vocab.json with merges.txt (RoBERTa), or vocab.txt (BERT). Pooling is the mean over all tokens, or
 * what the sentence-transformers files beside it ask for (pooling mode, normalisation, maximum length). Cost: linear in
 * the files, whose weights are brought into the layout of the kernels. */
FORELOOP_API foreloop_status foreloop_transformer_open(foreloop_transformer **transformer, const char *directory,
                                                       const foreloop_options *options, foreloop_error *error);
FORELOOP_API void foreloop_transformer_close(foreloop_transformer *transformer);

/* Length of the pooled vector; length of one token's hidden state; borrowed tokenizer. */
FORELOOP_API size_t foreloop_transformer_embedding_size(const foreloop_transformer *transformer);
FORELOOP_API size_t foreloop_transformer_hidden_size(const foreloop_transformer *transformer);
FORELOOP_API const foreloop_tokenizer *foreloop_transformer_tokenizer(const foreloop_transformer *transformer);

FORELOOP_API foreloop_status foreloop_encoder_create(foreloop_encoder **encoder,
                                                     const foreloop_transformer *transformer, foreloop_error *error);
FORELOOP_API void foreloop_encoder_close(foreloop_encoder *encoder);

/* Lets the encoder spread each step of its work over threads: in `shares` tasks, 1 to 4096, best as many as there are
 * cores. `parallel` is copied; NULL: the calling thread alone, as at first. Same bits for every number. Memory: about
 * 8 x the longest window x (hidden size / heads) bytes a share. */
FORELOOP_API foreloop_status foreloop_encoder_set_parallel(foreloop_encoder *encoder,
                                                           const foreloop_parallel_for *parallel, size_t shares,
                                                           foreloop_error *error);

/* Text to pooled vector: embedding[embedding_size]. The encoder of a model bundle cuts long text into overlapping
 * windows; a window's vector is the mean of its content tokens' last hidden states, the text's is the mean of its
 * windows' weighted by their content tokens. A Hugging Face checkpoint pools one window, special tokens included, cut
 * off at its maximum length (foreloop_transformer_open). A text without a token to pool gives the zero vector. Cost:
 * one forward pass a window. */
FORELOOP_API foreloop_status foreloop_encode_text(foreloop_encoder *encoder, const char *text, size_t length,
                                                  float *embedding, foreloop_error *error);

/* The same for many texts at once: embeddings[count][embedding_size], with the bits that foreloop_encode_text gives
 * each of them. Windows run together, as many tokens at a time as the model has positions, without padding: the weights
 * are read once for all of them, so that short texts cost much less than one by one. An error's message names the text.
 * Allocates for the largest `count` so far. */
FORELOOP_API foreloop_status foreloop_encode_texts(foreloop_encoder *encoder, const char *const *texts,
                                                   const size_t *lengths, size_t count, float *embeddings,
                                                   foreloop_error *error);

/* Ids to last hidden states: hidden[count][hidden_size], f32, row-major. One forward pass over exactly these ids, all
 * of them attended to; token types 0, or `types[count]` where not NULL. Errors: LIMIT when count exceeds the positions
 * of the model; ARGUMENT for count 0 or for an id or type out of range; VALUE when a state overflows. Cost: for each
 * layer count x hidden x (4 hidden + 2 intermediate) + 2 count^2 x hidden multiply-adds. */
FORELOOP_API foreloop_status foreloop_encode_ids(foreloop_encoder *encoder, const uint32_t *ids, const uint32_t *types,
                                                 size_t count, float *hidden, foreloop_error *error);

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

/* An XGBoost model (boosters gbtree and dart). Immutable. */
typedef struct foreloop_gbdt foreloop_gbdt;

/* What an XGBoost dump (Booster.dump_model JSON) does not hold. Fields are read for dumps only, except where said. */
typedef struct foreloop_gbdt_options {
    size_t size;
    const foreloop_allocator *allocator;
    int has_base_score; /* 1: base_score below is given, for every format */
    float base_score;   /* in margin space, added to every sum; a dump without it: 0.5, as XGBoost's old default */
    const float *tree_weights; /* DART weights of a dump, one for each tree; NULL: all 1 */
    size_t tree_weight_count;
    size_t num_class;         /* outputs of a dump; trees take turns; 0 and 1: one, or as many as leaves have numbers */
    size_t num_parallel_tree; /* trees that an iteration adds to each output, where the file does not say; 0: 1 */
    const char *objective;    /* of a dump, for the transform of predictions: "binary:logistic" ...; NULL: none */
    const char *const *feature_names; /* the columns of a dump by name. NULL: names that are all f0, f1 ... are */
    size_t feature_name_count;        /* columns by number; other names take columns as they first occur */
    /* Every format: uses the trees of iterations begin <= i < end only, each iteration being num_parallel_tree trees
     * for each output; an end of 0 is behind the last. Both 0: all trees, as Booster.predict does, also when the file
     * has a best_iteration. An empty range leaves the base score. */
    size_t iteration_begin;
    size_t iteration_end;
    foreloop_tier tier; /* the highest that may be used, for every format */
} foreloop_gbdt_options;
FORELOOP_API void foreloop_gbdt_options_init(foreloop_gbdt_options *options, size_t size);

/* Opens save_model JSON or UBJSON (XGBoost 1.0 to 3.4) or dump_model JSON, told apart by content. Errors: FORMAT with
 * the byte offset; UNSUPPORTED for boosters and objectives that this library does not do, by name; VALUE for a base
 * score, leaf or weight that is not finite or that the objective does not allow; MISMATCH for options that do not fit
 * the trees; LIMIT beyond 2^29 nodes or columns. Cost: linear in the file's size, about 15 ns a byte of JSON and 2 of
 * UBJSON; the file is not needed afterwards. Memory: 24 bytes a node; a tree with leaves of several numbers
 * (multi_strategy multi_output_tree) is kept once for each of them. */
FORELOOP_API foreloop_status foreloop_gbdt_open(foreloop_gbdt **gbdt, const char *path,
                                                const foreloop_gbdt_options *options, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_gbdt_open_memory(foreloop_gbdt **gbdt, const void *data, size_t size,
                                                       const foreloop_gbdt_options *options, foreloop_error *error);
FORELOOP_API void foreloop_gbdt_close(foreloop_gbdt *gbdt);

typedef struct foreloop_gbdt_info {
    size_t size;          /* set by the caller to sizeof(foreloop_gbdt_info); only that much is written */
    size_t feature_count; /* columns that a row must have */
    size_t output_count;  /* numbers per row of foreloop_gbdt_predict with margin */
    size_t tree_count;    /* of the file, in use: within the iterations of the options */
    size_t max_depth;
    const char *objective;   /* "reg:squarederror" ..., "unknown" for a dump; borrowed */
    const char *notes;       /* assumptions made and doubts found while loading, "" if none; borrowed */
    size_t prediction_count; /* numbers per row without margin: 1, the class, for multi:softmax, else output_count */
    size_t iteration_count;  /* in the file */
    int64_t best_iteration;  /* of early stopping, as the file says; -1: none */
    int has_gain;            /* 1: the file holds the gain of every split, for foreloop_gbdt_importance */
    int has_cover;           /* 1: the file holds the cover of every node, for that and for foreloop_gbdt_explain */
    foreloop_tier tier;      /* that predictions use */
} foreloop_gbdt_info;
FORELOOP_API void foreloop_gbdt_get_info(const foreloop_gbdt *gbdt, foreloop_gbdt_info *info);
/* The feature's name, or NULL when the model names none or the index is too large. */
FORELOOP_API const char *foreloop_gbdt_feature_name(const foreloop_gbdt *gbdt, size_t index);
/* The feature's type as training was told it: "float", "int", "q", "i" (indicator) or "c" (category). NULL when the
 * model holds no types or the index is too large. Rows hold float32 whatever the type. */
FORELOOP_API const char *foreloop_gbdt_feature_type(const foreloop_gbdt *gbdt, size_t index);

/* Predicts rows[row_count][stride], f32, the first feature_count of each row; NaN is missing, infinities are numbers.
 * `margin` not 0 gives outputs[row_count][output_count], the raw sums, bit-equal to
 * Booster.predict(output_margin=True); 0 gives outputs[row_count][prediction_count] by the objective's transform. Sums
 * run in tree order in f32 from the base score. A category is a whole number, cut towards zero; negative and unknown
 * ones are in no set. Errors: ARGUMENT when stride < feature_count. Cost: rows from about ten on in blocks of 64, which
 * go through a tree together, trees of more than 256 leaves and categorical ones apart; fewer rows walk the trees.
 * Allocates nothing; takes about 80 KiB of stack. */
FORELOOP_API foreloop_status foreloop_gbdt_predict(const foreloop_gbdt *gbdt, const float *rows, size_t row_count,
                                                   size_t stride, int margin, float *outputs, foreloop_error *error);

/* Rows as they lie in the caller's memory. The value of feature f in row r is values[r * row_stride + f *
 * column_stride], strides in floats: row-major rows have column_stride 1, column-major ones row_stride 1. Columns from
 * column_count on do not exist: the trees must not read them. */
typedef struct foreloop_gbdt_rows {
    size_t size;
    const float *values;
    size_t row_count;
    size_t column_count;
    size_t row_stride;    /* 0: column_count x column_stride */
    size_t column_stride; /* 0: 1 */
    int has_missing;      /* 1: values equal to `missing` are missing, besides NaN */
    float missing;
} foreloop_gbdt_rows;
FORELOOP_API void foreloop_gbdt_rows_init(foreloop_gbdt_rows *rows, size_t size);

/* What to predict; numbers per row. */
typedef enum foreloop_gbdt_output {
    FORELOOP_GBDT_PREDICTION = 0, /* prediction_count: the objective's transform of the margins */
    FORELOOP_GBDT_MARGIN = 1,     /* output_count: base score and leaves, the raw sums */
    FORELOOP_GBDT_LEAF_SUM = 2,   /* output_count: the leaves alone, summed in tree order from 0 */
    FORELOOP_GBDT_LEAF_INDEX = 3  /* tree_count: for each tree in the file's order the number that the file gives the
                                     leaf which the row reaches, as Booster.predict(pred_leaf=True) */
} foreloop_gbdt_output;

/* foreloop_gbdt_predict for rows of any layout: outputs[row_count][numbers per row]. Errors: ARGUMENT when the trees
 * read a column that does not exist, and for an unknown output. Cost: row_count x trees x depth. Allocates nothing for
 * row-major rows with all columns and no sentinel, nor for LEAF_SUM and LEAF_INDEX; else one block of up to 64 rows of
 * feature_count values for the call, into which they are copied: MEMORY when there is none. */
FORELOOP_API foreloop_status foreloop_gbdt_predict_rows(const foreloop_gbdt *gbdt, const foreloop_gbdt_rows *rows,
                                                        foreloop_gbdt_output output, float *outputs,
                                                        foreloop_error *error);

/* Importance of features, over the trees in use, as Booster.get_score; 0 for a feature that no tree reads. A tree with
 * leaves of several numbers counts once. */
typedef enum foreloop_gbdt_importance_kind {
    FORELOOP_GBDT_WEIGHT = 0,     /* the number of splits on the feature */
    FORELOOP_GBDT_GAIN = 1,       /* the mean gain of those splits */
    FORELOOP_GBDT_COVER = 2,      /* the mean cover of those splits */
    FORELOOP_GBDT_TOTAL_GAIN = 3, /* the sum of their gains */
    FORELOOP_GBDT_TOTAL_COVER = 4 /* the sum of their covers */
} foreloop_gbdt_importance_kind;

/* Writes scores[feature_count]. Errors: UNSUPPORTED when the file does not hold the gain or the cover (dumps without
 * statistics; vector leaves before XGBoost 3.2); ARGUMENT for an unknown kind. Cost: one pass over the nodes. Allocates
 * a count for each feature during the call for the means, else nothing. */
FORELOOP_API foreloop_status foreloop_gbdt_importance(const foreloop_gbdt *gbdt, foreloop_gbdt_importance_kind kind,
                                                      double *scores, foreloop_error *error);

/* The scratch of explanations. Belongs to one thread. */
typedef struct foreloop_gbdt_explainer foreloop_gbdt_explainer;

/* Errors: UNSUPPORTED when the file does not hold the cover of the nodes (see foreloop_gbdt_info); VALUE for a cover
 * that is negative or not finite; LIMIT for trees deeper than 1024. Cost: one pass over the nodes. Memory:
 * feature_count numbers of 8 bytes, and about 8 x depth^2 bytes. */
FORELOOP_API foreloop_status foreloop_gbdt_explainer_create(foreloop_gbdt_explainer **explainer,
                                                            const foreloop_gbdt *gbdt, foreloop_error *error);
FORELOOP_API void foreloop_gbdt_explainer_close(foreloop_gbdt_explainer *explainer);

/* Exact path-dependent TreeSHAP: contributions[row_count][output_count][feature_count + 1], as
 * Booster.predict(pred_contribs=True). The last number is the bias, what the model gives on average over its training
 * rows; each other one is what the feature's value adds to that; together they make the margin. Errors: ARGUMENT when
 * the trees read a column that does not exist. Cost: a row visits all nodes of all trees, with work in proportion to
 * the depth of the deepest at each; some hundred times a prediction. Allocates nothing. */
FORELOOP_API foreloop_status foreloop_gbdt_explain(foreloop_gbdt_explainer *explainer, const foreloop_gbdt_rows *rows,
                                                   float *contributions, foreloop_error *error);

/* Writes trees as save_model JSON, which XGBoost 2.0 to 3.4 loads and predicts the same bits from, and this library
 * too: the trees in use, DART weights and the options of opening them worked in, nodes numbered breadth first. Errors:
 * UNSUPPORTED for several outputs, categorical splits, dumps, and objectives whose base score is not a margin or that
 * have parameters of their own. Cost: linear,
 * about 100 ns a node. */

/* To a file, which appears whole or not at all. */
FORELOOP_API foreloop_status foreloop_gbdt_save(const foreloop_gbdt *gbdt, const char *path, foreloop_error *error);
/* To buffer[capacity], and the full length to *needed; call with capacity 0 to learn it. LIMIT, with *needed written,
 * when capacity > 0 is too small. */
FORELOOP_API foreloop_status foreloop_gbdt_save_memory(const foreloop_gbdt *gbdt, void *buffer, size_t capacity,
                                                       size_t *needed, foreloop_error *error);

/* ---- Training a ranker ------------------------------------------------------------------------------------------- */

/* Measured candidates. Those of one workload on one machine are a group, and only they are compared with each other:
 * group g is the rows groups[g] to groups[g + 1] - 1, from 0 to the number of rows; groups may be empty. */
typedef struct foreloop_ranker_data {
    size_t size;
    const foreloop_gbdt_rows *rows; /* features, by columns of any name; NaN is missing, infinities are errors */
    const size_t *groups;           /* [group_count + 1] */
    size_t group_count;
    /* What was measured: one of the two, the other NULL. */
    const double *seconds;   /* [rows]: run times > 0; INFINITY for a candidate that failed, the slowest of all */
    const float *relevances; /* [rows]: higher is better, finite; for NDCG from 0, with its exponential gain whole
                                numbers to 31 */
} foreloop_ranker_data;
FORELOOP_API void foreloop_ranker_data_init(foreloop_ranker_data *data, size_t size);

typedef enum foreloop_ranker_objective {
    FORELOOP_RANKER_NDCG = 0,         /* LambdaMART: pairs weighted by their share in NDCG; XGBoost's rank:ndcg */
    FORELOOP_RANKER_PAIRWISE = 1,     /* all pairs alike; rank:pairwise */
    FORELOOP_RANKER_SQUARED_ERROR = 2 /* regression of the relevance; reg:squarederror */
} foreloop_ranker_objective;

/* Which pairs of a group's rows a round compares, besides that their relevances differ. */
typedef enum foreloop_ranker_pairs {
    FORELOOP_RANKER_PAIRS_TOP = 0, /* each of the rows now predicted best (pair_count of them) with all behind it */
    FORELOOP_RANKER_PAIRS_MEAN = 1 /* each row with pair_count others, drawn anew each round */
} foreloop_ranker_pairs;

/* Options of training; the init function sets what stands in parentheses. Their meaning, and the trees' within the
 * rounding of sums, is XGBoost's; so are names where they differ, given behind. */
typedef struct foreloop_ranker_options {
    size_t size;
    const foreloop_allocator *allocator; /* NULL: malloc and free */
    foreloop_tier tier;                  /* the highest that may be used; the bits do not depend on it */
    foreloop_ranker_objective objective; /* (NDCG) */
    foreloop_ranker_pairs pairs;         /* (TOP) lambdarank_pair_method topk and mean */
    size_t pair_count;                   /* (0) lambdarank_num_pair_per_sample; 0: 32, for MEAN 1 */
    int linear_gain;                     /* (0) 1: the gain of NDCG is the relevance r, not 2^r - 1; ndcg_exp_gain */
    int keep_gradient_scale;             /* (0) 1: no lambdarank_normalization of a group's gradients */
    int keep_pair_scale;                 /* (0) 1: no lambdarank_score_normalization of a pair's gradient */
    unsigned grades;                     /* (15) of NDCG from `seconds`: relevance is the whole number nearest to */
    float grade_power;          /* (0.5) grades x (least time of the group / time) ^ grade_power; else its logarithm */
    size_t rounds;              /* (300) trees to add */
    size_t depth;               /* (6) of a tree at the most, 1 to 24; max_depth */
    size_t bins;                /* (255) of a feature at the most, 2 to 255, besides missing; max_bin */
    float eta;                  /* (0.1) shrinkage of leaves, > 0 to 1 */
    float lambda;               /* (1) L2 penalty on leaves, >= 0 */
    float min_child_weight;     /* (0) least sum of hessians in a child */
    float min_split_gain;       /* (0) least gain of a split; gamma */
    float subsample;            /* (1) share of rows that a tree learns from, > 0 to 1 */
    float columns_by_tree;      /* (1) share of features that a tree may read, > 0 to 1; colsample_bytree */
    float columns_by_node;      /* (1) and, of them, a split; colsample_bynode */
    uint64_t seed;              /* (0) of what is drawn */
    float base_score;           /* (0) where sums start, without `start` */
    const foreloop_gbdt *start; /* (NULL) goes on from these trees: their copy comes first. Of one output, without
                                   categorical splits; the rows have its features */
    const char *const *feature_names; /* (NULL) of the columns; NULL: those of `start`, or none */
    size_t feature_name_count;
    const foreloop_parallel_for *parallel; /* (NULL) for the caller's threads; the bits do not depend on it */
    /* (NULL) Called after each round on the calling thread; not 0 ends training with the rounds done so far. */
    int (*progress)(void *user, size_t rounds_done, size_t rounds);
    void *progress_user;
} foreloop_ranker_options;
FORELOOP_API void foreloop_ranker_options_init(foreloop_ranker_options *options, size_t size);

/* Trains trees that put each group's fast candidates first (histogram boosting of depth-wise trees on quantile bins;
 * missing values take the side that is better at each split). `options` may be NULL. The result is an ordinary
 * foreloop_gbdt: predict with it, save it, hand it to foreloop_scorer_set_ranker. Deterministic: equal data, options
 * and seed give equal bits, whatever the tier and the threads. Errors: VALUE for a feature that is infinite, for times
 * or relevances out of range, when no group has two rows that differ in them (nothing to learn), and when scores
 * overflow; MISMATCH for names or columns that do not fit `start`; LIMIT beyond 2^28 rows or 2^24 columns; UNSUPPORTED
 * for a `start` as said above.
 *
 * Cost: to begin with, features x rows x log rows. A round: the pairs; and for each level but the last at most half of
 * the rows x features, an addition each; for each node (features x bins), a division for 16 of them at once. On one
 * core 10,000 rows x 320 features take about 10 ms a round at depth 6. Memory: a byte a value, and 2 KiB x features x
 * (depth + 1) for histograms. */
FORELOOP_API foreloop_status foreloop_ranker_train(foreloop_gbdt **ranker, const foreloop_ranker_data *data,
                                                   const foreloop_ranker_options *options, foreloop_error *error);

/* Mean NDCG@k over the groups whose rows differ in relevance (k 0: of whole groups), with the same relevances as
 * training by these options; scores[rows], equal ones in order of rows. VALUE when there is no such group. Cost: n log
 * n for each group. */
FORELOOP_API foreloop_status foreloop_ranker_ndcg(const foreloop_ranker_data *data,
                                                  const foreloop_ranker_options *options, const float *scores, size_t k,
                                                  double *ndcg, foreloop_error *error);

/* ---- Actions ----------------------------------------------------------------------------------------------------- */

/* A named argument of an action. A number when `text` is NULL, else a string. docs/ACTIONS.md lists the vocabulary. */
typedef struct foreloop_argument {
    const char *name;
    const char *text;
    double number;
} foreloop_argument;

/* One scheduling action: kind and named arguments in any order. Pointers are borrowed for the call. */
typedef struct foreloop_action {
    const char *kind;
    const foreloop_argument *arguments;
    size_t argument_count;
} foreloop_action;

/* ---- Tuning records ---------------------------------------------------------------------------------------------- */

/* Reads a log of measured schedules record by record. Belongs to one thread. */
typedef struct foreloop_records foreloop_records;

typedef struct foreloop_records_options {
    size_t size;
    const foreloop_allocator *allocator;
    int full_trace; /* 1: emit what follows EnterPostproc as it stands; 0: one `postprocess` action, always last */
} foreloop_records_options;
FORELOOP_API void foreloop_records_options_init(foreloop_records_options *options, size_t size);

typedef enum foreloop_records_format {
    FORELOOP_RECORDS_METASCHEDULE = 0,
    FORELOOP_RECORDS_ANSOR = 1,
    FORELOOP_RECORDS_HOST = 2 /* lines that hold canonical actions: docs/ACTIONS.md, "Records of other hosts" */
} foreloop_records_format;

/* One record. Everything in it is borrowed until the next call on the reader. */
typedef struct foreloop_record {
    size_t size;                    /* set by the caller to sizeof(foreloop_record); only that much is written */
    uint64_t line;                  /* line number in the file, from 0 */
    int64_t workload;               /* its index in the database; Ansor's are numbered as they come, from 0 */
    const char *target;             /* the target as the record has it: JSON text, Ansor's own text, or "" */
    const foreloop_action *actions; /* canonical actions in order */
    size_t action_count;
    const uint32_t *instructions; /* for each action: the number of trace instructions after which it has happened */
    const double *seconds;        /* measured run times, all finite and > 0 */
    size_t seconds_count;         /* 0: the measurement failed or is missing */
    size_t unknown_instructions;  /* instructions of kinds that the reader does not know (they emit nothing) */
    int measurement_failed;       /* 1: there are run times, but they tell of a failure; seconds_count is 0 then */
    foreloop_records_format format;
    const char *workload_key; /* of an Ansor record, else "" */
} foreloop_record;

/* Opens a MetaSchedule database_tuning_record.json, an Ansor log (v0.2 to v0.6), or the records of a host that says
 * canonical actions itself, plain or gzip. The lines tell the format by their content, and a file may mix them. */
FORELOOP_API foreloop_status foreloop_records_open(foreloop_records **records, const char *path,
                                                   const foreloop_records_options *options, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_records_open_memory(foreloop_records **records, const void *data, size_t size,
                                                          const foreloop_records_options *options,
                                                          foreloop_error *error);
FORELOOP_API void foreloop_records_close(foreloop_records *records);

/* Reads the next record. END after the last one. FORMAT for a malformed line, with its number: the reader stays usable
 * and the next call goes on with the next line; so it is after LIMIT, for a line of over 64 MiB. IO when a gzip file is
 * cut off or damaged, after the whole lines before the damage; then END. Blank lines and comments (#) are skipped.
 * Cost: linear in the line's length, about 10 ns a byte; memory is constant in the file's, but for one copy of each
 * distinct key of Ansor's workloads. */
FORELOOP_API foreloop_status foreloop_records_next(foreloop_records *records, foreloop_record *record,
                                                   foreloop_error *error);

/* Rewrites a program's text by the canonical rule, as the encoder expects it: comments dropped, white space normalised,
 * renamed keywords restored. Writes `capacity` bytes at the most and the full length to `*needed`; call with capacity 0
 * to learn it. The result is never longer than twice the input. Idempotent. FORELOOP_ERROR_LIMIT (with `*needed`
 * written) when capacity > 0 is too small. */
FORELOOP_API foreloop_status foreloop_canonical_text(const char *text, size_t length, char *buffer, size_t capacity,
                                                     size_t *needed, foreloop_error *error);

/* ---- Model ------------------------------------------------------------------------------------------------------- */

/* A model bundle: transformer, action vocabulary, transition, feature order, trees, and in some bundles a score
 * network. Immutable. */
typedef struct foreloop_model foreloop_model;

/* Opens a bundle: a directory, or the same packed into one file (weights/FORMAT.md). Everything is checked here, once:
 * shapes, names, ranges, finite weights, the ranker's features against the manifest's. The message of an error names
 * the file, the field and what was expected. Cost: linear in the files; a packed bundle has the tables of tokenizer
 * and trees in it, which are compared with their checksum and used where they lie. */
FORELOOP_API foreloop_status foreloop_model_open(foreloop_model **model, const char *path,
                                                 const foreloop_options *options, foreloop_error *error);
/* Opens a packed bundle in memory. `data` is borrowed until the model is closed and need not be aligned. */
FORELOOP_API foreloop_status foreloop_model_open_memory(foreloop_model **model, const void *data, size_t size,
                                                        const foreloop_options *options, foreloop_error *error);
FORELOOP_API void foreloop_model_close(foreloop_model *model);

/* Packs the bundle in `directory` into the file `path`, after opening it as a check. The file appears whole or not at
 * all. Cost: that of opening, twice, and of writing the file. */
FORELOOP_API foreloop_status foreloop_model_pack(const char *directory, const char *path,
                                                 const foreloop_options *options, foreloop_error *error);

typedef struct foreloop_model_info {
    size_t size;          /* set by the caller to sizeof(foreloop_model_info); only that much is written */
    uint64_t fingerprint; /* of the whole content; equal for a directory and its packed file */
    size_t latent_size;   /* d, the length of z */
    size_t kind_count;
    size_t feature_count; /* of foreloop_features */
    size_t tree_count;
    uint32_t text_rule;   /* version of the canonical text rule */
    const char *manifest; /* model.json, terminated; borrowed */
    size_t manifest_length;
    size_t network_parameters; /* weights and biases that the score network reads; 0: there is no network */
} foreloop_model_info;
FORELOOP_API void foreloop_model_get_info(const foreloop_model *model, foreloop_model_info *info);
/* Names by index; NULL past the end. Borrowed. */
FORELOOP_API const char *foreloop_model_kind_name(const foreloop_model *model, size_t index);
FORELOOP_API const char *foreloop_model_feature_name(const foreloop_model *model, size_t index);
/* The name of the kind's argument number `slot`, NULL past the end. Borrowed. */
FORELOOP_API const char *foreloop_model_slot_name(const foreloop_model *model, size_t kind, size_t slot);
/* Parts of the model. Borrowed. Predictions with the trees leave the score network out. */
FORELOOP_API const foreloop_transformer *foreloop_model_transformer(const foreloop_model *model);
FORELOOP_API const foreloop_gbdt *foreloop_model_gbdt(const foreloop_model *model);

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

/* A program's latent state z0. Immutable. */
typedef struct foreloop_workload foreloop_workload;

/* Encodes a program. The text is TensorIR as TVM prints it; it is canonicalised first, but not parsed: a text that is
 * no program gets a state too, which means nothing. `encoder` must be of foreloop_model_transformer(model). Cost:
 * milliseconds, one forward pass for each window of the text. */
FORELOOP_API foreloop_status foreloop_workload_encode(foreloop_workload **workload, const foreloop_model *model,
                                                      foreloop_encoder *encoder, const char *text, size_t length,
                                                      foreloop_error *error);
/* Encodes many programs at once: workloads[count], all or none, with the bits that each gets alone. Short programs cost
 * much less so (foreloop_encode_texts). */
FORELOOP_API foreloop_status foreloop_workload_encode_batch(foreloop_workload **workloads, const foreloop_model *model,
                                                            foreloop_encoder *encoder, const char *const *texts,
                                                            const size_t *lengths, size_t count, foreloop_error *error);
/* Makes a workload from a latent state of latent_size numbers that the caller has. VALUE where one is not finite, or
 * larger than 1e18. Cost, as for encoding and loading besides their own: kinds x latent_size. */
FORELOOP_API foreloop_status foreloop_workload_create(foreloop_workload **workload, const foreloop_model *model,
                                                      const float *latent, foreloop_error *error);
FORELOOP_API void foreloop_workload_close(foreloop_workload *workload);

/* z0[latent_size], borrowed. */
FORELOOP_API const float *foreloop_workload_latent(const foreloop_workload *workload);

/* Bytes that foreloop_workload_save writes. */
FORELOOP_API size_t foreloop_workload_saved_size(const foreloop_workload *workload);
/* Writes the state, with the model's fingerprint and a checksum, to buffer[capacity]; little-endian on every machine.
 * LIMIT when capacity is too small. */
FORELOOP_API foreloop_status foreloop_workload_save(const foreloop_workload *workload, void *buffer, size_t capacity,
                                                    foreloop_error *error);
/* Loads a saved state. FORMAT when damaged, MISMATCH when it belongs to another model. */
FORELOOP_API foreloop_status foreloop_workload_load(foreloop_workload **workload, const foreloop_model *model,
                                                    const void *data, size_t size, foreloop_error *error);

/* ---- The action table -------------------------------------------------------------------------------------------- */

/* Distinct actions of a search and their embeddings (paper: d_a = D[r] + MLP_r(phi(a))). Interning is exclusive;
 * scorers may read it from many threads while nobody interns. */
typedef struct foreloop_actions foreloop_actions;

/* The id of every action whose kind the model does not know: no effect on the state and on features. */
#define FORELOOP_ACTION_UNKNOWN 0u

/* `capacity`: distinct actions at the most, 0 for 65,536; memory is 4 x (latent_size + kinds + aggregates of a
 * kind) bytes and some for each one that is interned, and as much again while the table grows. */
FORELOOP_API foreloop_status foreloop_actions_create(foreloop_actions **actions, const foreloop_model *model,
                                                     size_t capacity, foreloop_error *error);
FORELOOP_API void foreloop_actions_close(foreloop_actions *actions);

/* Interns list[count] into ids[count], in bulk or one by one. Equal actions (kind and known arguments; order and
 * unknown arguments do not matter) have equal ids; ids are stable and count up from 1. An unknown kind gets
 * FORELOOP_ACTION_UNKNOWN; unknown arguments are dropped; a string outside a vocabulary takes the slot's unknown
 * category; numbers may lie outside the range of the training data: all are counted in the report, and by candidate in
 * foreloop_score_details. Errors: VALUE for a number that is not finite, and for an encoded one or an embedding beyond
 * 1e18; ARGUMENT for a string where the model wants a number or the reverse, and for a known argument given twice;
 * LIMIT when the table is full. After an error the actions before the failing one are interned, and ids is untouched.
 * Cost: the characters of the names of kind and arguments, of which the model's own (foreloop_model_kind_name,
 * foreloop_model_slot_name) and those that come from where they came before take one comparison, and a hash look-up. A
 * new action costs the two layers of its kind's network and kinds x latent_size; many in one call cost less each, as
 * they are computed kind by kind. Allocates only to grow: for new actions, and for the largest `count` so far. */
FORELOOP_API foreloop_status foreloop_actions_intern(foreloop_actions *actions, const foreloop_action *list,
                                                     size_t count, uint32_t *ids, foreloop_error *error);

typedef struct foreloop_actions_report {
    size_t size;                /* set by the caller to sizeof(foreloop_actions_report); only that much is written */
    uint64_t distinct;          /* actions in the table, without FORELOOP_ACTION_UNKNOWN */
    uint64_t unknown_kinds;     /* interned actions of unknown kind, every occurrence */
    uint64_t dropped_arguments; /* arguments that the model has no slot for, every occurrence */
    uint64_t unknown_values;    /* strings and categories outside their vocabulary, every occurrence */
    uint64_t out_of_range;      /* numbers outside the range of the training data, every occurrence */
} foreloop_actions_report;
FORELOOP_API void foreloop_actions_get_report(const foreloop_actions *actions, foreloop_actions_report *report);

/* ---- Hardware ---------------------------------------------------------------------------------------------------- */

/* The machine that the candidates run on, as far as models read it. 0 means unknown or absent. */
typedef struct foreloop_hardware {
    size_t size;
    double cores;               /* that the program uses */
    double simd_bits;           /* widest vector register */
    double l1d_bytes;           /* per core */
    double l2_bytes;            /* per core */
    double l3_bytes;            /* shared */
    double clock_hz;            /* nominal */
    double sm_count;            /* GPU: streaming multiprocessors */
    double shared_memory_bytes; /* GPU: per SM */
    double memory_bandwidth;    /* bytes a second */
} foreloop_hardware;
FORELOOP_API void foreloop_hardware_init(foreloop_hardware *hardware, size_t size);
/* Fills in what this machine tells about itself, 0 elsewhere. Cost: some small files of /proc and /sys. */
FORELOOP_API foreloop_status foreloop_hardware_detect(foreloop_hardware *hardware, foreloop_error *error);

/* ---- Scoring ----------------------------------------------------------------------------------------------------- */

/* Scratch of the scoring, bound to a model, an action table and a machine. Belongs to one thread; any number of scorers
 * share a model and a table. No function below allocates, except foreloop_scorer_create and, for a k larger than
 * before, foreloop_topk_begin and foreloop_rank_top. A score is the margin of the ranker's trees, plus the output of
 * the score network where the model has one. Scores are finite, comparable only between candidates of one workload:
 * higher is faster. A sequence has 2^24 actions at the most (else LIMIT).
 *
 * In the costs below, `read` is the number of features that the ranker's trees or the score network read, a step (one
 * action) costs kinds + the z among them + the aggregates of the action's kind, in additions, and the network costs
 * foreloop_model_info.network_parameters, in multiplications. */
typedef struct foreloop_scorer foreloop_scorer;

/* `hardware` is copied; NULL takes foreloop_hardware_detect. Cost: memory of up to 8 KB x `read` (about 2 MB for many)
 * and 17 KB x kinds; where the model has a score network, or the ranker trees of more than 256 leaves or categorical
 * splits, up to 16 KB x `read` more, and for the network 512 bytes x its widest layer, or its inputs. */
FORELOOP_API foreloop_status foreloop_scorer_create(foreloop_scorer **scorer, const foreloop_model *model,
                                                    const foreloop_actions *actions, const foreloop_hardware *hardware,
                                                    foreloop_error *error);
FORELOOP_API void foreloop_scorer_close(foreloop_scorer *scorer);

/* Scores a batch in CSR form: candidate i is ids[offsets[i]] .. ids[offsets[i + 1] - 1], offsets[count + 1] not
 * falling. scores[count]. Errors: ARGUMENT for an id that the table does not have, falling offsets, or a workload of
 * another model; LIMIT for a sequence that is too long. The same bits for every split and order of a batch, number of
 * threads, and tier. A candidate pays only for the steps behind the prefix that it shares with those just before it, so
 * sort the batch where that does not come by itself. Cost: for each candidate its steps, (distinct kinds in it) x (z
 * among `read`), trees x depth, and the network. */
FORELOOP_API foreloop_status foreloop_score(foreloop_scorer *scorer, const foreloop_workload *workload,
                                            const uint32_t *ids, const size_t *offsets, size_t count, float *scores,
                                            foreloop_error *error);

/* Scores a batch as foreloop_score does, with the same bits, in scorer_count tasks: task i uses scorers[i] on an even
 * share. The scorers are distinct, of one model, action table and hardware. Errors: as foreloop_score, before any task
 * runs. Cost: foreloop_score over scorer_count. */
FORELOOP_API foreloop_status foreloop_score_parallel(foreloop_scorer *const *scorers, size_t scorer_count,
                                                     const foreloop_parallel_for *parallel,
                                                     const foreloop_workload *workload, const uint32_t *ids,
                                                     const size_t *offsets, size_t count, float *scores,
                                                     foreloop_error *error);

/* How much of a candidate the model knows: a host may trust another cost model where it is little. */
typedef struct foreloop_candidate_details {
    uint32_t actions;           /* in the sequence */
    uint32_t unknown_kinds;     /* of them, without any effect on the score */
    uint32_t dropped_arguments; /* without a slot in the model; of equal actions the most that one of them had */
    uint32_t unknown_values;    /* strings and categories outside their vocabulary */
    uint32_t out_of_range;      /* numbers outside the range of the training data, where the manifest tells it */
} foreloop_candidate_details;
/* Tells it of each candidate: details[count]. Cost: the number of actions. */
FORELOOP_API foreloop_status foreloop_score_details(const foreloop_scorer *scorer, const uint32_t *ids,
                                                    const size_t *offsets, size_t count,
                                                    foreloop_candidate_details *details, foreloop_error *error);

/* Scores to weights for samplers: weights[i] = exp((scores[i] - best) / temperature) / sum of these, and at least
 * FLT_MIN. So weights are positive, rise with the score, and add up to 1 within rounding; a low temperature prefers the
 * best, a high one makes all alike. Differences of scores are meaningful, their absolute size is not: a temperature of
 * 1 gives the odds that a ranker trained on pairs predicts. Errors: ARGUMENT for a temperature that is not positive and
 * finite, VALUE for a score that is not finite. `weights` may be `scores`. Cost: two exponentials a score. */
FORELOOP_API foreloop_status foreloop_scores_to_weights(const float *scores, size_t count, float temperature,
                                                        float *weights, foreloop_error *error);

/* The feature vector of one candidate: features[feature_count] in the order of foreloop_model_feature_name. Cost: its
 * steps over all of z and all aggregates. */
FORELOOP_API foreloop_status foreloop_features(foreloop_scorer *scorer, const foreloop_workload *workload,
                                               const uint32_t *ids, size_t id_count, float *features,
                                               foreloop_error *error);

/* The same of a batch in CSR form, for training a ranker: features[count][stride], stride at least feature_count. Cost:
 * foreloop_features of each. */
FORELOOP_API foreloop_status foreloop_features_batch(foreloop_scorer *scorer, const foreloop_workload *workload,
                                                     const uint32_t *ids, const size_t *offsets, size_t count,
                                                     float *features, size_t stride, foreloop_error *error);

/* Scores by these trees from now on, instead of the model's, which stay as they are; NULL goes back to those. A score
 * network of the model stays beside them. Borrowed until then, or until the scorer is closed. The trees read features
 * of the model: any subset by name, or without names all of them in its order (a dump without names that stops before
 * the last one counts fewer: MISMATCH). A search can so retrain on what it measures (foreloop_ranker_train) and go on.
 * States of step-wise search stay good while the trees before and after read nothing but what the model's own trees and
 * its network read, else using an older one gives ARGUMENT and foreloop_state_size changes. Errors: MISMATCH for a
 * feature that the model does not have, no trees, or several outputs; VALUE when sums of leaves can overflow; ARGUMENT
 * while a stream of foreloop_topk_begin is open. Allocates; after an error the scorer is as it was. Cost: the size of
 * the trees once; scores that read more features than the model's own form all of them. */
FORELOOP_API foreloop_status foreloop_scorer_set_ranker(foreloop_scorer *scorer, const foreloop_gbdt *ranker,
                                                        foreloop_error *error);

/* The predicted end state of one candidate: latent[latent_size]. Cost: as foreloop_features. */
FORELOOP_API foreloop_status foreloop_rollout(foreloop_scorer *scorer, const foreloop_workload *workload,
                                              const uint32_t *ids, size_t id_count, float *latent,
                                              foreloop_error *error);

/* The k best of a batch, best first; equal scores in order of index. Writes min(k, count) indices and scores (scores
 * may be NULL) and that number to *found; a k of 0 finds none. Cost: foreloop_score plus count x log k. */
FORELOOP_API foreloop_status foreloop_rank_top(foreloop_scorer *scorer, const foreloop_workload *workload,
                                               const uint32_t *ids, const size_t *offsets, size_t count, size_t k,
                                               uint64_t *indices, float *scores, size_t *found, foreloop_error *error);

/* The k best of a stream: begin, push any number of batches (candidates are numbered on from 0), finish. Pushes of one
 * stream use one workload, the same object (else ARGUMENT). finish writes like foreloop_rank_top and ends the stream;
 * begin ends one that was left open. Cost: push as foreloop_rank_top; finish k x log k. */
FORELOOP_API foreloop_status foreloop_topk_begin(foreloop_scorer *scorer, size_t k, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_topk_push(foreloop_scorer *scorer, const foreloop_workload *workload,
                                                const uint32_t *ids, const size_t *offsets, size_t count,
                                                foreloop_error *error);
FORELOOP_API foreloop_status foreloop_topk_finish(foreloop_scorer *scorer, uint64_t *indices, float *scores,
                                                  size_t *found, foreloop_error *error);

/* Step-wise search (beam, MCTS): a state is foreloop_state_size bytes of the caller's memory, aligned to 16, copied by
 * memcpy, released by forgetting it. begin makes the state of the empty sequence, step appends one action, score gives
 * the same bits as foreloop_score of the whole sequence. A state is bound to the scorer's model and action table, not
 * to the scorer; hardware is the scorer's. Cost: begin and copies foreloop_state_size, about 4 x (`read` + 2 x kinds)
 * bytes; step one step, whatever came before; score (distinct kinds) x (z among `read`) + trees x depth, and the
 * network. Many states score faster at once. */
FORELOOP_API size_t foreloop_state_size(const foreloop_scorer *scorer);
FORELOOP_API foreloop_status foreloop_state_begin(foreloop_scorer *scorer, const foreloop_workload *workload,
                                                  void *state, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_state_step(foreloop_scorer *scorer, void *state, uint32_t id,
                                                 foreloop_error *error);
FORELOOP_API foreloop_status foreloop_state_score(foreloop_scorer *scorer, const void *state, float *score,
                                                  foreloop_error *error);
FORELOOP_API foreloop_status foreloop_state_score_batch(foreloop_scorer *scorer, const void *const *states,
                                                        size_t count, float *scores, foreloop_error *error);

/* ---- Search spaces ----------------------------------------------------------------------------------------------- */

/* The candidates of one sketch: all traces of TVM MetaSchedule that differ from a given one only in what was decided.
 * A candidate is a point, uint32_t[decision_count]: for each decision the number of one of its legal values, from 0. So
 * points are copied, compared and hashed as they lie, and stay good when traces are added. A space belongs to one
 * thread at a time; with an action table, interning and scoring points intern into that.
 *
 * Legal are: for SamplePerfectTile all factors that multiply to the extent, with the innermost within its bound (those
 * that traces show beyond 2^18 of them, beyond 2^23 factors in the whole space, and for SamplePartitionedTile); for
 * SampleCategorical its candidates; for SampleComputeLocation the places that traces show, because TVM finds them in
 * the program, all places of a trace together. Places at a loop of extent 1 are not legal, as TVM moves those; where
 * the loops are not known, places are legal beside tiles that have their ones where tiles have them that traces show
 * with those places. The numbers of
 * annotations for parallel loops, vectors, unrolling and thread extents are decisions too, of the values that traces
 * show. What a trace has from EnterPostproc on is cut off: TVM makes it anew. */
typedef struct foreloop_space foreloop_space;

/* Makes a space from a trace: a line of database_tuning_record.json, or its trace alone, [[instructions], [decisions]].
 * `actions` may be NULL, for points without scores. Errors: FORMAT for a malformed trace, for one that lacks a decision
 * or has two for one instruction, for a decision or attributes that contradict their instruction, and for a name that
 * is not defined, once, before its use; UNSUPPORTED for a decision of a kind not named above; LIMIT for a text of over
 * 64 MiB, and for more than 4,096 instructions before EnterPostproc, 1,024 decided numbers or 64 places. Cost: some
 * times that of reading a record, and the legal tiles. */
FORELOOP_API foreloop_status foreloop_space_create(foreloop_space **space, foreloop_actions *actions, const char *text,
                                                   size_t length, const foreloop_options *options,
                                                   foreloop_error *error);
FORELOOP_API void foreloop_space_close(foreloop_space *space);

/* Adds what a further trace of the same sketch shows, and writes its point unless `point` is NULL. Errors: as above;
 * MISMATCH for a trace of another sketch or workload: a search has a space for each sketch. */
FORELOOP_API foreloop_status foreloop_space_add(foreloop_space *space, const char *text, size_t length, uint32_t *point,
                                                foreloop_error *error);

typedef struct foreloop_space_info {
    size_t size;           /* set by the caller to sizeof(foreloop_space_info); only that much is written */
    size_t decision_count; /* numbers in a point */
    size_t action_count;   /* of every candidate */
    size_t instruction_count;
    size_t trace_count; /* distinct traces that were added, with the first */
    double points;      /* product of the numbers of values: an upper bound of the legal points */
} foreloop_space_info;
FORELOOP_API void foreloop_space_get_info(const foreloop_space *space, foreloop_space_info *info);

typedef enum foreloop_decision_kind {
    FORELOOP_DECISION_TILE = 0,       /* numbers: the factors from the outermost */
    FORELOOP_DECISION_CATEGORY = 1,   /* number: index of the candidate */
    FORELOOP_DECISION_ANNOTATION = 2, /* number: the annotation's */
    FORELOOP_DECISION_LOCATIONS = 3   /* numbers: -2 inline, -1 root, else the loop, for each SampleComputeLocation */
} foreloop_decision_kind;

typedef struct foreloop_space_decision {
    size_t size; /* set by the caller to sizeof(foreloop_space_decision); only that much is written */
    foreloop_decision_kind kind;
    uint32_t instruction; /* of the trace, from 0; of places the first */
    size_t numbers;       /* of a value */
    size_t values;        /* by now */
} foreloop_space_decision;
FORELOOP_API foreloop_status foreloop_space_get_decision(const foreloop_space *space, size_t index,
                                                         foreloop_space_decision *decision, foreloop_error *error);
/* The numbers of a value: numbers[foreloop_space_decision.numbers]. */
FORELOOP_API foreloop_status foreloop_space_get_value(const foreloop_space *space, size_t index, uint32_t value,
                                                      double *numbers, foreloop_error *error);

/* The point of a trace that was added, by its number. */
FORELOOP_API foreloop_status foreloop_space_get_trace_point(const foreloop_space *space, size_t index, uint32_t *point,
                                                            foreloop_error *error);
/* 1 when the point is one of the space's and legal, else 0. */
FORELOOP_API int foreloop_space_is_legal(const foreloop_space *space, const uint32_t *point);

/* Draws points[count], legal ones. `*random` is the state of the random numbers: any seed, then what the last call
 * left; the same state gives the same points on every machine. Each decision is drawn evenly, or by the probabilities
 * that the trace has, places evenly among those legal beside the tiles. Allocates nothing. Cost: the decisions, and the
 * values of the places. */
FORELOOP_API foreloop_status foreloop_space_sample(const foreloop_space *space, uint64_t *random, size_t count,
                                                   uint32_t *points, foreloop_error *error);
/* Changes one decision of each of points[count], and the places where they are not legal any more; a tile moves a
 * factor or is drawn anew. A point that has no other near it stays. `mutated` may be `points`. Cost: as sampling. */
FORELOOP_API foreloop_status foreloop_space_mutate(const foreloop_space *space, uint64_t *random,
                                                   const uint32_t *points, size_t count, uint32_t *mutated,
                                                   foreloop_error *error);
/* Makes points of two each, first[count] and second[count]: every decision is of one of both, the places another legal
 * one where neither fits. `crossed` overlaps neither. Cost: as sampling. */
FORELOOP_API foreloop_status foreloop_space_cross(const foreloop_space *space, uint64_t *random, const uint32_t *first,
                                                  const uint32_t *second, size_t count, uint32_t *crossed,
                                                  foreloop_error *error);
/* All legal points one after the other, of the places the slowest, of the others the last one changing fastest. END
 * when there is no other; ARGUMENT for going on from a point that is not legal. Cost: each value of each decision is
 * looked at twice at the most, beside the places, however few points are legal; and where loops are not known, a
 * comparison with the patterns that traces show. Most calls look at a few values. */
FORELOOP_API foreloop_status foreloop_space_first(const foreloop_space *space, uint32_t *point, foreloop_error *error);
FORELOOP_API foreloop_status foreloop_space_next(const foreloop_space *space, uint32_t *point, foreloop_error *error);

/* The trace of a point as JSON, [[instructions], [decisions]], for TVM to replay. Writes `capacity` bytes at the most
 * and the full length to `*needed`; call with capacity 0 to learn it. LIMIT (with `*needed` written) when capacity > 0
 * is too small. Reading the record that has this trace gives the same actions, and so the same score. */
FORELOOP_API foreloop_status foreloop_space_trace(const foreloop_space *space, const uint32_t *point, char *buffer,
                                                  size_t capacity, size_t *needed, foreloop_error *error);

/* Interns the actions of points[count]: ids[count][action_count]. They stay in the table, three or so for each new
 * point. Errors: as foreloop_actions_intern; ARGUMENT for a point of another space. Cost: the actions that its
 * decisions change, as foreloop_actions_intern does. */
FORELOOP_API foreloop_status foreloop_space_intern(foreloop_space *space, const uint32_t *points, size_t count,
                                                   uint32_t *ids, foreloop_error *error);
/* Scores points[count], with the bits that foreloop_score gives. Of their actions only those that depend on a single
 * decision stay in the table, however many points are scored. Errors: as foreloop_space_intern and foreloop_score;
 * ARGUMENT for a scorer of another action table. After an error some of scores[count] may be written. Allocates
 * nothing once the space has seen the like. Cost: for each point a walk of the trace, three or so new actions, and
 * foreloop_score. */
FORELOOP_API foreloop_status foreloop_space_score(foreloop_space *space, foreloop_scorer *scorer,
                                                  const foreloop_workload *workload, const uint32_t *points,
                                                  size_t count, float *scores, foreloop_error *error);

#ifdef __cplusplus
}
#endif

#endif
