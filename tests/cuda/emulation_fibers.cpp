/* The emulation's scheduler: the threads of a block as fibers, their barriers and warp functions. */
#undef _FORTIFY_SOURCE /* its longjmp takes another fiber's stack for an error */
#include "emulation.h"
#include "emulation_internal.h"
#include <csetjmp>
#include <cstdarg>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_SANITIZED 1
#endif
#endif
#ifdef FIBER_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

position here;

namespace {

enum { STACK = 128 << 10 };
enum condition { READY, AT_BARRIER, AT_WARP, DONE };

struct fiber {
    ucontext_t context; /* where it begins */
    jmp_buf place;      /* where it goes on */
    bool begun;
    condition state;
    unsigned char *stack;
    dim3 thread;
};

struct warp {
    unsigned arrived, left; /* lanes */
    operation what;         /* that the first one came to */
    unsigned generation;    /* of exchanges: one is read while the next is filled */
    uint64_t values[2][WARP];
};

uint64_t seed = 0, random_state = 0;
char first_fault[512];
size_t launch_count = 0;
std::vector<fiber> fibers;
std::vector<unsigned char> stacks;
warp warps[WARP];
unsigned thread_count, barrier_count, left_count, running;
jmp_buf scheduler;
const std::function<void()> *body;
std::vector<unsigned char> dynamic;
size_t dynamic_bytes, allowed_bytes = 48 << 10;

#ifdef FIBER_SANITIZED
void *scheduler_fake;
const void *scheduler_stack;
size_t scheduler_stack_size;
#endif

uint64_t draw() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Which fibers can run, a bit each. */
uint64_t ready[MAX_THREADS / 64];

void set_ready(unsigned index) {
    fibers[index].state = READY;
    ready[index / 64] |= (uint64_t)1 << index % 64;
}

/* From a fiber back to the scheduler; returns when it is scheduled again. */
void give_way() {
    fiber &own = fibers[running];
#ifdef FIBER_SANITIZED
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(own.state == DONE ? nullptr : &fake, scheduler_stack, scheduler_stack_size);
#endif
    if (_setjmp(own.place) == 0)
        _longjmp(scheduler, 1);
#ifdef FIBER_SANITIZED
    __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_stack_size);
#endif
}

void begin_fiber() {
#ifdef FIBER_SANITIZED
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_size);
#endif
    (*body)();
    fibers[running].state = DONE;
    left_count++;
    warps[running / WARP].left++;
    if (barrier_count > 0)
        fault("thread %u ends while others wait at a barrier", running);
    if (warps[running / WARP].arrived > 0)
        fault("thread %u ends while others of its warp wait at a warp function", running);
    give_way();
}

void run_fiber(unsigned index) {
    fiber &next = fibers[index];
    running = index;
    ready[index / 64] &= ~((uint64_t)1 << index % 64);
    here.linear = index;
    here.thread = next.thread;
#ifdef FIBER_SANITIZED
    __sanitizer_start_switch_fiber(&scheduler_fake, next.stack, STACK);
#endif
    if (_setjmp(scheduler) == 0) {
        if (next.begun)
            _longjmp(next.place, 1);
        next.begun = true;
        setcontext(&next.context);
    }
#ifdef FIBER_SANITIZED
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

/* The first ready fiber from `from` on, or MAX_THREADS. */
unsigned ready_from(unsigned from) {
    for (unsigned word = from / 64; word < MAX_THREADS / 64; word++) {
        const uint64_t bits = word == from / 64 ? ready[word] & ~(uint64_t)0 << from % 64 : ready[word];
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return MAX_THREADS;
}

/* The next fiber that can run, or MAX_THREADS. */
unsigned choose() {
    if (seed == 1) {
        for (unsigned word = MAX_THREADS / 64; word-- > 0;)
            if (ready[word])
                return word * 64 + 63 - (unsigned)__builtin_clzll(ready[word]);
        return MAX_THREADS;
    }
    const unsigned next = ready_from(seed == 0 ? 0 : (unsigned)(draw() % thread_count));
    return next < MAX_THREADS ? next : ready_from(0);
}

void begin_block(unsigned x, unsigned y, unsigned z) {
    here.block = dim3(x, y, z);
    here.serial++;
    here.block_epoch = 0;
    memset(here.warp_epochs, 0, sizeof here.warp_epochs);
    memset(warps, 0, sizeof warps);
    memset(ready, 0, sizeof ready);
    barrier_count = left_count = 0;
    for (unsigned i = 0; i < thread_count; i++) {
        fiber &own = fibers[i];
        own.begun = false;
        set_ready(i);
        own.stack = stacks.data() + (size_t)i * STACK;
        own.thread = dim3(i % here.block_size.x, i / here.block_size.x % here.block_size.y,
                          i / here.block_size.x / here.block_size.y);
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = own.stack;
        own.context.uc_stack.ss_size = STACK;
        own.context.uc_link = nullptr;
        makecontext(&own.context, begin_fiber, 0);
    }
}

void run_block(unsigned x, unsigned y, unsigned z) {
    begin_block(x, y, z);
    while (left_count < thread_count) {
        const unsigned next = choose();
        if (next == MAX_THREADS) {
            fault("the threads of block %u wait for each other: %u at a barrier, %u have ended", x, barrier_count,
                  left_count);
            return;
        }
        run_fiber(next);
    }
}

} /* namespace */

void set_seed(uint64_t given) {
    seed = given;
    random_state = given * 0x9e3779b97f4a7c15u + 1;
}

const char *take_fault() {
    static char taken[sizeof first_fault];
    memcpy(taken, first_fault, sizeof taken);
    first_fault[0] = 0;
    return taken;
}

bool has_fault() {
    return first_fault[0] != 0;
}

size_t launched() {
    return launch_count;
}

void fault(const char *format, ...) {
    va_list arguments;
    if (first_fault[0])
        return;
    va_start(arguments, format);
    vsnprintf(first_fault, sizeof first_fault, format, arguments);
    va_end(arguments);
}

void *dynamic_shared(size_t element_size, size_t cell_size) {
    const size_t needed = dynamic_bytes / element_size * cell_size;
    if (dynamic.size() < needed) /* the first thread of a launch, so no pointer into it is held */
        dynamic.resize(needed);
    return dynamic.data();
}

void allow_shared(size_t bytes) {
    if (bytes > (size_t)MAX_SHARED)
        fault("%zu bytes of dynamic shared memory are more than a block may have", bytes);
    allowed_bytes = bytes > allowed_bytes ? bytes : allowed_bytes;
}

void barrier() {
    if (left_count > 0)
        fault("thread %u waits at a barrier, but others have ended", running);
    if (++barrier_count < thread_count - left_count) {
        fibers[running].state = AT_BARRIER;
        give_way();
        return;
    }
    barrier_count = 0;
    here.block_epoch++;
    for (unsigned i = 0; i < thread_count; i++)
        if (fibers[i].state == AT_BARRIER)
            set_ready(i);
    set_ready(running);
    give_way(); /* the last one to come need not be the first to go on */
}

const uint64_t *exchange(operation what, unsigned mask, uint64_t value) {
    warp &own = warps[running / WARP];
    const unsigned generation = own.generation;
    if (mask != 0xffffffffu)
        fault("thread %u names some lanes only (%08x): the emulation knows whole warps", running, mask);
    if (own.left > 0)
        fault("thread %u waits at a warp function, but others of its warp have ended", running);
    if (own.arrived > 0 && own.what != what)
        fault("thread %u comes to another warp function than others of its warp", running);
    own.what = what;
    own.values[generation % 2][running % WARP] = value;
    if (++own.arrived < WARP - own.left) {
        fibers[running].state = AT_WARP;
        give_way();
        return own.values[generation % 2];
    }
    own.arrived = 0;
    own.generation++;
    here.warp_epochs[running / WARP] += what == SYNC_WARP; /* shuffles and votes order no memory */
    const unsigned first = running / WARP * WARP;
    for (unsigned i = first; i < first + WARP; i++)
        if (fibers[i].state == AT_WARP)
            set_ready(i);
    set_ready(running);
    give_way();
    return own.values[generation % 2];
}

void run(dim3 blocks, dim3 threads, size_t shared_bytes, const std::function<void()> &kernel) {
    thread_count = threads.x * threads.y * threads.z;
    launch_count++;
    if (thread_count == 0 || thread_count > MAX_THREADS || thread_count % WARP != 0 || blocks.x == 0 || blocks.y == 0 ||
        blocks.z == 0 || blocks.y > 65535 || blocks.z > 65535 || blocks.x > 2147483647u) {
        fault("a launch of %u x %u x %u blocks of %u threads", blocks.x, blocks.y, blocks.z, thread_count);
        return;
    }
    if (shared_bytes > allowed_bytes) {
        fault("a launch with %zu bytes of dynamic shared memory, but %zu are allowed", shared_bytes, allowed_bytes);
        return;
    }
    fibers.resize(thread_count > fibers.size() ? thread_count : fibers.size());
    stacks.resize(fibers.size() * STACK);
    here.block_size = threads;
    here.grid_size = blocks;
    dynamic_bytes = shared_bytes;
    body = &kernel;
    for (unsigned z = 0; z < blocks.z; z++)
        for (unsigned y = 0; y < blocks.y; y++)
            for (unsigned x = 0; x < blocks.x; x++)
                run_block(x, y, z);
}

} /* namespace emulation */

/* For tests in C. */
extern "C" void emulation_set_seed(unsigned long long given) {
    emulation::set_seed(given);
}
extern "C" const char *emulation_take_fault(void) {
    return emulation::take_fault();
}
