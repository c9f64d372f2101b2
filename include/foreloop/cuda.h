/*
 * foreloop on a GPU: the encoder and the scoring of foreloop.h by CUDA, in a library of its own (libforeloop_cuda), for
 * hosts that search GPU schedules or score millions of candidates.
 *
 *     foreloop_cuda_open              once         a GPU and its memory
 *     foreloop_cuda_model_create      once         the weights of a foreloop_model on it, immutable
 *     foreloop_cuda_actions_create    once         the device's copy of an action table, filled up as the table grows
 *     foreloop_cuda_workload_create   per program  the encoded program on it
 *     foreloop_cuda_scorer_create     per stream   scratch of the scoring
 *     foreloop_cuda_score             per batch    sequences of action ids -> scores, with the bits of foreloop_score
 *
 * The rules of foreloop.h hold, and these:
 *
 *   Streams    Work is queued on the caller's stream, in order, and functions return without waiting for it, unless
 *              their own comment says when they wait. NULL is the default stream. An array that a call is given belongs
 *              to the queued work until the stream has come past it, device memory and registered (pinned) host memory
 *              alike; host memory that is not registered is read before the call returns, and written before it
 *              returns, so that the call waits for its stream.
 *   Threads    A GPU may be used from many threads; model, workload and transformer are immutable and shared. A scorer
 * or an encoder belongs to one thread and one stream at a time. A table of actions is shared while nobody updates it.
 *   Memory     Host memory is the allocator's of foreloop_cuda_options; device memory is the pair's or the arena's, by
 *              default cudaMalloc's. All device memory is taken when objects are created. Closing an object gives it
 *              back: synchronise first with the streams that used it. Creating and closing may wait for the GPU.
 *   Process    Initialises the CUDA runtime, which makes the device's primary context, at foreloop_cuda_open. The
 *              thread's current device is as before after each call. Handles do not survive fork.
 *   Errors     FORELOOP_ERROR_DEVICE for a missing driver or device and for each error of CUDA, which may stem from
 *              work queued before; outputs may be written in part then.
 *   Numbers    From the same z0 on, rollouts, features and scores have the bits of the CPU, but for the sign of zeros.
 */
#ifndef FORELOOP_CUDA_H
#define FORELOOP_CUDA_H

#include <foreloop/foreloop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t or CUstream, as it is. */
typedef struct CUstream_st *foreloop_cuda_stream;

/* Where an array of the caller lies. */
typedef enum foreloop_cuda_place { FORELOOP_CUDA_HOST = 0, FORELOOP_CUDA_DEVICE = 1 } foreloop_cuda_place;

/* ---- The GPU ----------------------------------------------------------------------------------------------------- */

/* `allocate` returns device memory of `size` > 0 bytes aligned to 256, or NULL; `release` gets what it returned. Both
 * are called with the GPU current. */
typedef struct foreloop_cuda_allocator {
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *pointer);
    void *user;
} foreloop_cuda_allocator;

typedef struct foreloop_cuda_options {
    size_t size;
    const foreloop_allocator *allocator;             /* of host memory. NULL: malloc and free; copied */
    const foreloop_cuda_allocator *device_allocator; /* NULL: cudaMalloc and cudaFree; copied */
    void *arena;                                     /* instead: device memory, aligned to 256, which all objects */
    size_t arena_size;                               /* share; what is closed is not used again before the last one */
    int device;                                      /* number of the GPU, as CUDA counts them */
} foreloop_cuda_options;
FORELOOP_API void foreloop_cuda_options_init(foreloop_cuda_options *options, size_t size);

/* The number of GPUs. DEVICE when there is no driver or it is too old, with what to do about it. */
FORELOOP_API foreloop_status foreloop_cuda_device_count(size_t *count, foreloop_error *error);

/* An open GPU. */
typedef struct foreloop_cuda foreloop_cuda;

/* Errors: DEVICE without a driver, without this GPU, or for one of compute capability below 8.9; MISMATCH when the
 * linked libforeloop is of another version. */
FORELOOP_API foreloop_status foreloop_cuda_open(foreloop_cuda **gpu, const foreloop_cuda_options *options,
                                                foreloop_error *error);
FORELOOP_API void foreloop_cuda_close(foreloop_cuda *gpu);

typedef struct foreloop_cuda_info {
    size_t size;                /* set by the caller to sizeof(foreloop_cuda_info); only that much is written */
    const char *name;           /* "NVIDIA GeForce RTX 4090"; borrowed */
    int compute_capability;     /* 89 is 8.9 */
    size_t sm_count;            /* streaming multiprocessors */
    size_t shared_memory_bytes; /* per streaming multiprocessor */
    size_t l2_bytes;
    size_t memory_bytes;
    double clock_hz;         /* highest */
    double memory_bandwidth; /* bytes a second, from the memory's clock and width; 0: unknown */
    size_t allocated_bytes;  /* device memory that objects hold now */
} foreloop_cuda_info;
FORELOOP_API void foreloop_cuda_get_info(const foreloop_cuda *gpu, foreloop_cuda_info *info);

/* Sets the fields of the GPU (sm_count, shared_memory_bytes, memory_bandwidth, clock_hz, l2_bytes), for candidates that
 * run on it, and zeroes the others. */
FORELOOP_API foreloop_status foreloop_cuda_hardware(const foreloop_cuda *gpu, foreloop_hardware *hardware,
                                                    foreloop_error *error);

/* ---- Models and action tables ------------------------------------------------------------------------------------ */

/* What scoring reads of a model, on the GPU. Borrows gpu and model. Waits for its own upload on `stream`. */
typedef struct foreloop_cuda_model foreloop_cuda_model;
FORELOOP_API foreloop_status foreloop_cuda_model_create(foreloop_cuda_model **result, foreloop_cuda *gpu,
                                                        const foreloop_model *model, foreloop_cuda_stream stream,
                                                        foreloop_error *error);
FORELOOP_API void foreloop_cuda_model_close(foreloop_cuda_model *model);

/* The device's copy of an action table, which is interned into on the CPU. Borrows both. `capacity`: distinct actions
 * at the most, 0 for 65,536, whose memory is taken at once: about 4 x (latent_size + kinds + aggregates of a kind)
 * bytes each. */
typedef struct foreloop_cuda_actions foreloop_cuda_actions;
FORELOOP_API foreloop_status foreloop_cuda_actions_create(foreloop_cuda_actions **result,
                                                          const foreloop_cuda_model *model,
                                                          const foreloop_actions *actions, size_t capacity,
                                                          foreloop_error *error);
FORELOOP_API void foreloop_cuda_actions_close(foreloop_cuda_actions *actions);

/* Appends what was interned since the last call, on `stream`: work of other streams that uses the new ids must wait for
 * it. Call it after interning, before scoring. Errors: LIMIT when the capacity is reached. Waits for the copy of the
 * update before. Cost: the size of the new rows. */
FORELOOP_API foreloop_status foreloop_cuda_actions_update(foreloop_cuda_actions *actions, foreloop_cuda_stream stream,
                                                          foreloop_error *error);

/* ---- The encoder ------------------------------------------------------------------------------------------------- */

/* What the matrix products read: weights and inputs. Sums, states between layers, softmax, norms and pooling are in
 * float32 with each of them, and TF32 is never used. docs/NUMERICS.md tells their error. */
typedef enum foreloop_cuda_precision {
    FORELOOP_CUDA_PRECISION_F32 = 0,
    FORELOOP_CUDA_PRECISION_F16 = 1, /* on tensor cores, half the memory; to 65,504 */
    FORELOOP_CUDA_PRECISION_BF16 = 2 /* on tensor cores, half the memory; as far as float32, with fewer digits */
} foreloop_cuda_precision;

/* The weights of a transformer on the GPU. Borrows both; transformer may be foreloop_model_transformer of a model.
 * Errors: VALUE for a weight beyond float16; UNSUPPORTED for more than 65,535 heads. Waits for its own upload on
 * `stream`. Memory: as the precision's; the word embeddings stay in what their file has; and 4 MiB until it returns. */
typedef struct foreloop_cuda_transformer foreloop_cuda_transformer;
FORELOOP_API foreloop_status foreloop_cuda_transformer_create(foreloop_cuda_transformer **result, foreloop_cuda *gpu,
                                                              const foreloop_transformer *transformer,
                                                              foreloop_cuda_precision precision,
                                                              foreloop_cuda_stream stream, foreloop_error *error);
FORELOOP_API void foreloop_cuda_transformer_close(foreloop_cuda_transformer *transformer);

typedef struct foreloop_cuda_encoder_options {
    size_t size;
    size_t tokens;         /* (4,096) that run at once, at least the transformer's longest sequence: 4 x (3 x hidden
                              size + the larger of that and the intermediate size) bytes each in float32 */
    size_t texts;          /* (1,024) that end in one run */
    size_t gemm_workspace; /* (32 MiB) device memory for cuBLAS */
    const char *cublas;    /* path of the library, or its name for the system's loader, which also takes what the
                              process has loaded already. NULL: libcublas.so.13, then libcublas.so.12 */
} foreloop_cuda_encoder_options;
FORELOOP_API void foreloop_cuda_encoder_options_init(foreloop_cuda_encoder_options *options, size_t size);

/* Scratch of a transformer, and a handle of cuBLAS, which keeps some memory of its own. Borrows the transformer.
 * `options` may be NULL. Errors: DEVICE without cuBLAS. Waits for the default stream. */
typedef struct foreloop_cuda_encoder foreloop_cuda_encoder;
FORELOOP_API foreloop_status foreloop_cuda_encoder_create(foreloop_cuda_encoder **result,
                                                          const foreloop_cuda_transformer *transformer,
                                                          const foreloop_cuda_encoder_options *options,
                                                          foreloop_error *error);
FORELOOP_API void foreloop_cuda_encoder_close(foreloop_cuda_encoder *encoder);

/* Queues the encoding of texts: embeddings[count][embedding_size] in `place`, as foreloop_encode_texts gives them
 * within rounding. Texts are tokenised on the CPU before anything is queued, and their errors told then; all windows
 * run together without padding, options.tokens at a time. From the third such run on the call waits until the inputs of
 * the run before the last are copied. The bits are the same for the same GPU, cuBLAS, options and batch; in another
 * batch the same text may differ in the last bits, for cuBLAS chooses its kernels by size. */
FORELOOP_API foreloop_status foreloop_cuda_encode_texts(foreloop_cuda_encoder *encoder, const char *const *texts,
                                                        const size_t *lengths, size_t count, float *embeddings,
                                                        foreloop_cuda_place place, foreloop_cuda_stream stream,
                                                        foreloop_error *error);

/* Queues one forward pass: hidden[count][hidden_size] in `place`; ids and types (may be NULL) are on the host, are read
 * before the call returns, and have the errors of foreloop_encode_ids. */
FORELOOP_API foreloop_status foreloop_cuda_encode_ids(foreloop_cuda_encoder *encoder, const uint32_t *ids,
                                                      const uint32_t *types, size_t count, float *hidden,
                                                      foreloop_cuda_place place, foreloop_cuda_stream stream,
                                                      foreloop_error *error);

/* After the caller has synchronised with the encoder's stream, which is still there: VALUE, naming the first text of
 * its call whose states overflowed since the last check; it has NaN or infinities. Waits for a small copy. */
FORELOOP_API foreloop_status foreloop_cuda_encoder_check(foreloop_cuda_encoder *encoder, foreloop_error *error);

/* foreloop_workload_encode_batch on the GPU: workloads[count], all or none, which the CPU's scorers take as they take
 * their own, and the GPU's by foreloop_cuda_workload_create. The encoder is of foreloop_model_transformer(model). Waits
 * for `stream`. */
FORELOOP_API foreloop_status foreloop_cuda_encode_workloads(foreloop_workload **workloads, const foreloop_model *model,
                                                            foreloop_cuda_encoder *encoder, const char *const *texts,
                                                            const size_t *lengths, size_t count,
                                                            foreloop_cuda_stream stream, foreloop_error *error);

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

/* An encoded program on the GPU. Borrows the model. */
typedef struct foreloop_cuda_workload foreloop_cuda_workload;
/* From a workload of the same model: the bits of scores are then the CPU's. Waits for its own upload. */
FORELOOP_API foreloop_status foreloop_cuda_workload_create(foreloop_cuda_workload **result,
                                                           const foreloop_cuda_model *model,
                                                           const foreloop_workload *workload,
                                                           foreloop_cuda_stream stream, foreloop_error *error);
/* From a latent state, as foreloop_workload_create checks it: latent[latent_size], for example what an encoder has left
 * on the GPU (after its projection). Waits for `stream`. */
FORELOOP_API foreloop_status foreloop_cuda_workload_from_latent(foreloop_cuda_workload **result,
                                                                const foreloop_cuda_model *model, const float *latent,
                                                                foreloop_cuda_place place, foreloop_cuda_stream stream,
                                                                foreloop_error *error);
FORELOOP_API void foreloop_cuda_workload_close(foreloop_cuda_workload *workload);

/* ---- Scoring ----------------------------------------------------------------------------------------------------- */

typedef struct foreloop_cuda_scorer_options {
    size_t size;
    size_t chunk;      /* (16,384) candidates that run at once: 4 x (features that trees and score network read, and
                          twice the outputs of the network's widest hidden layer) bytes each */
    size_t staged_ids; /* (2^19) ids of host batches that are copied at once, 4 bytes each, twice; no sequence of a host
                          batch may be longer */
} foreloop_cuda_scorer_options;
FORELOOP_API void foreloop_cuda_scorer_options_init(foreloop_cuda_scorer_options *options, size_t size);

/* Scratch of the scoring. Borrows model and actions. `hardware` is of the machine that the candidates run on, often
 * foreloop_cuda_hardware; NULL takes foreloop_hardware_detect. `options` may be NULL. */
typedef struct foreloop_cuda_scorer foreloop_cuda_scorer;
FORELOOP_API foreloop_status foreloop_cuda_scorer_create(
    foreloop_cuda_scorer **result, const foreloop_cuda_model *model, const foreloop_cuda_actions *actions,
    const foreloop_hardware *hardware, const foreloop_cuda_scorer_options *options, foreloop_error *error);
FORELOOP_API void foreloop_cuda_scorer_close(foreloop_cuda_scorer *scorer);

/* As foreloop_scorer_set_ranker: these trees from now on; NULL: the model's own; the score network stays. The trees are
 * copied to the GPU. Synchronise before with the stream that the scorer works on. Waits for its upload. */
FORELOOP_API foreloop_status foreloop_cuda_scorer_set_ranker(foreloop_cuda_scorer *scorer, const foreloop_gbdt *ranker,
                                                             foreloop_error *error);

/* A batch in CSR form, as of foreloop_score, of 2^32 - 2 candidates at the most. */
typedef struct foreloop_cuda_batch {
    size_t size;
    const uint32_t *ids;
    const size_t *offsets; /* [count + 1] */
    size_t count;
    size_t id_count;           /* of `ids`; needed on the device, where the CPU cannot look at the offsets */
    foreloop_cuda_place place; /* of ids and offsets */
} foreloop_cuda_batch;
FORELOOP_API void foreloop_cuda_batch_init(foreloop_cuda_batch *batch, size_t size);

/* Queues the scoring of a batch: scores[count] in `place`, as foreloop_score gives them. A batch on the host is checked
 * before anything is queued (ARGUMENT, LIMIT as foreloop_score), then copied piece by piece; from the third piece of
 * options.chunk candidates or options.staged_ids ids on, the call waits until the piece before the last is copied. A
 * batch on the device is checked there: a candidate with falling offsets, an id that the table does not have or more
 * than 2^24 actions gets NaN, and foreloop_cuda_scorer_check tells it. */
FORELOOP_API foreloop_status foreloop_cuda_score(foreloop_cuda_scorer *scorer, const foreloop_cuda_workload *workload,
                                                 const foreloop_cuda_batch *batch, float *scores,
                                                 foreloop_cuda_place place, foreloop_cuda_stream stream,
                                                 foreloop_error *error);

/* The same for features[count][stride], as foreloop_features_batch; a bad candidate's are NaN. */
FORELOOP_API foreloop_status foreloop_cuda_features(foreloop_cuda_scorer *scorer,
                                                    const foreloop_cuda_workload *workload,
                                                    const foreloop_cuda_batch *batch, float *features, size_t stride,
                                                    foreloop_cuda_place place, foreloop_cuda_stream stream,
                                                    foreloop_error *error);

/* The k best of a batch, best first, equal scores in order of index: indices[min(k, count)] and scores (may be NULL) in
 * `place`. Bad candidates come last, with NaN. k is FORELOOP_CUDA_TOP_LIMIT at the most. A
 * score of -0 is given as 0. */
enum { FORELOOP_CUDA_TOP_LIMIT = 1024 };
FORELOOP_API foreloop_status foreloop_cuda_rank_top(foreloop_cuda_scorer *scorer,
                                                    const foreloop_cuda_workload *workload,
                                                    const foreloop_cuda_batch *batch, size_t k, uint64_t *indices,
                                                    float *scores, foreloop_cuda_place place,
                                                    foreloop_cuda_stream stream, foreloop_error *error);

/* After the caller has synchronised with the scorer's stream: ARGUMENT, naming the first bad candidate, when a batch on
 * the device since the last check had one. Waits for a small copy. */
FORELOOP_API foreloop_status foreloop_cuda_scorer_check(foreloop_cuda_scorer *scorer, foreloop_error *error);

#ifdef __cplusplus
}
#endif

#endif
