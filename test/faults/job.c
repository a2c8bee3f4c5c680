/*===- job.c - One rank of a small job, or all of them, with one fault ----===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* job GROUP STAGE TIMEOUT FAULT@MOMENT[.VISIT][+COUNT]:RANK
|*
|* GROUP is threads or tcp; a program with WITH_MPI has ranks of MPI. STAGE is
|* one, two or three: a library in the folder of the program. Each rank makes
|* two steps, and prints the result of each call that failed. A rank that makes
|* all calls prints a hash of its parameters. With SHOW_SHARED in the
environment
|* each rank prints how many ranks it reads in their memory.
|*
|* Rank RANK has the fault when it comes to MOMENT, which is a call, for the
|* VISIT-th time, from 0 on. With COUNT, it has the fault in the COUNT-th
|* message, or allocation, of this call. Faults:
|*
|*   none
|*   kill    the process gets SIGKILL
|*   stop    the process gets SIGSTOP; a process that continues goes on
|*   delay   the rank sleeps for 0.3 times TIMEOUT
|*   late    the rank sleeps for 1.6 times TIMEOUT
|*   leave   the rank destroys its step and its runtime
|*   memory  an allocation fails, in a program WITH_MEMORY; the malloc of a
|*           sanitizer never does
|*   plan    the rank loads the library of another stage
|*   vain    all ranks make two backward passes in a step, and RANK alone says
|*           of the first that it is the last
|*
\*===----------------------------------------------------------------------===*/

#include "one.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_MPI
#include "zero_rt/mpi.h"
#else
#include "zero_rt/tcp.h"
#endif

/*===----------------------------------------------------------------------===*\
|* Faults
\*===----------------------------------------------------------------------===*/

static struct {
  char kind[16];
  char moment[16];
  int visit;
  int count;
  int rank;
} fault;
static long timeout_ms;
static int moments_reached; /* of fault.moment */
static int has_fault_begun; /* the faulty rank is at the moment */
static int events_since;    /* messages, or allocations */
static _Thread_local int me = -1;
static _Thread_local int must_leave;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int is_fault(const char *kind) {
  return me == fault.rank && strcmp(fault.kind, kind) == 0;
}

static void sleep_ms(double ms) { usleep((useconds_t)(ms * 1000)); }

static void have_fault(void) {
  char text[64];
  int length = snprintf(text, sizeof(text), "rank %d: fault: %.6f %d\n", me,
                        now(), getpid());
  if (write(1, text, (size_t)length) != length)
    abort();
  has_fault_begun = 0;
  if (is_fault("kill"))
    raise(SIGKILL);
  else if (is_fault("stop"))
    raise(SIGSTOP);
  else if (is_fault("delay"))
    sleep_ms(0.3 * (double)timeout_ms);
  else if (is_fault("late"))
    sleep_ms(1.6 * (double)timeout_ms);
  else if (is_fault("leave"))
    must_leave = 1;
}

/* Whether this event is the one with the fault. */
static int is_event_of_fault(int is_allocation) {
  if (!has_fault_begun || me != fault.rank ||
      is_allocation != (strcmp(fault.kind, "memory") == 0) ||
      ++events_since != fault.count)
    return 0;
  have_fault();
  return 1;
}

/* This rank begins the call of |moment|, of any step. */
static void reach(const char *moment) {
  if (me != fault.rank)
    return;
  has_fault_begun = 0;
  if (strcmp(moment, fault.moment) != 0 || moments_reached++ != fault.visit)
    return;
  has_fault_begun = 1;
  if (fault.count == 0)
    have_fault();
}

#ifdef WITH_MPI
int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm comm, MPI_Request *request) {
  is_event_of_fault(0);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
#else
/* The runtime calls these instead of libc's. */
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  is_event_of_fault(0);
  return syscall(SYS_sendmsg, socket, message, flags);
}
int connect(int socket, const struct sockaddr *address, socklen_t length) {
  is_event_of_fault(0);
  return (int)syscall(SYS_connect, socket, address, length);
}
int accept4(int socket, struct sockaddr *address, socklen_t *length,
            int flags) {
  is_event_of_fault(0);
  return (int)syscall(SYS_accept4, socket, address, length, flags);
}
#endif

#ifdef WITH_MEMORY
#ifdef WITH_MPI
/* operator new(size_t), which throws std::bad_alloc, of what calls MPI. MPI
   calls malloc, too, and has no answer without memory. */
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
extern void *allocate(size_t bytes) __asm__("_Znwm");
void *allocate(size_t bytes) {
  void *data = is_event_of_fault(1) ? NULL : malloc(bytes ? bytes : 1);
  if (!data)
    throw_bad_alloc();
  return data;
}
#else
/* The runtime has an operator new of its own, which calls this. */
extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes) {
  return is_event_of_fault(1) ? NULL : __libc_malloc(bytes);
}
#endif
#endif

/*===----------------------------------------------------------------------===*\
|* The job
\*===----------------------------------------------------------------------===*/

static const zero_rt_library *library, *other_library;

enum { STEPS = 2, ELEMENTS = 64 * 48 };
static const int64_t elements[] = {ELEMENTS, 64, 10 * 64, 10};

static zero_rt_group *group;
static int exit_code;

static int report(const char *call, zero_rt_status status) {
  if (status) {
    printf("rank %d: %s: %s: %s\n", me, call, zero_rt_status_name(status),
           zero_rt_message());
    exit_code = 1;
  }
  return status == ZERO_RT_OK;
}

/* Calls of a rank that has left are not made. */
#define CALL(NAME, CALL_)                                                      \
  do {                                                                         \
    reach(NAME);                                                               \
    if (must_leave || !report(NAME, CALL_))                                    \
      return 0;                                                                \
  } while (0)

static int unit_of(zero_rt_step *step, int32_t id) {
  int32_t unit = -1;
  if (id >= 0 && id < ONE_NUM_PARAMETERS)
    report("unit_of", zero_rt_step_unit_of(step, id, &unit));
  return unit;
}

/* Before the first use of a unit, whose parameters have numbers that follow
   each other. The last parameter used was |before|. */
static int use_unit(zero_rt_step *step, int32_t before, int32_t id) {
  int unit = unit_of(step, id);
  if (unit >= 0 && unit != unit_of(step, before))
    CALL("unshard", zero_rt_step_unshard(step, unit, NULL));
  return 1;
}

/* After the last use of a unit. The next parameter used is |next|. */
static int leave_unit(zero_rt_step *step, int32_t id, int32_t next) {
  int unit = unit_of(step, id);
  if (unit >= 0 && unit != unit_of(step, next))
    CALL("reshard", zero_rt_step_reshard(step, unit, NULL));
  return 1;
}

static int run_forward(zero_rt_step *step) {
  for (int32_t id = 0; id < ONE_NUM_PARAMETERS; ++id)
    if (!use_unit(step, id - 1, id) || !leave_unit(step, id, id + 1))
      return 0;
  return 1;
}

static int run_backward(zero_rt_step *step, int k, int32_t hint) {
  static _Thread_local uint16_t values[ELEMENTS];
  CALL("begin", zero_rt_step_begin_backward(step, hint));
  for (int32_t id = ONE_NUM_PARAMETERS - 1; id >= 0; --id) {
    if (!use_unit(step, id + 1, id))
      return 0;
    /* bf16 numbers between 0.5 and 8, another one for each element and rank. */
    for (int64_t i = 0; i < elements[id]; ++i)
      values[i] = (uint16_t)(0x3f00 + (i * 7 + me * 31 + k * 13) % 0x200);
    zero_rt_tensor gradient = {sizeof(gradient),     ZERO_RT_BF16,
                               ZERO_RT_SPACE_DEVICE, 0,
                               elements[id],         values};
    CALL("gradient", zero_rt_step_gradient(step, id, &gradient, NULL, NULL));
    if (!leave_unit(step, id, id - 1))
      return 0;
  }
  return 1;
}

static int run_step(zero_rt_step *step, int k) {
  const double learning_rate = 0.5;
  if (strcmp(fault.kind, "vain") == 0) {
    if (!run_backward(step, k,
                      is_fault("vain") ? ZERO_RT_HINT_LAST
                                       : ZERO_RT_HINT_UNKNOWN))
      return 0;
    CALL("accumulate", zero_rt_step_accumulate(step));
  }
  if (!run_forward(step) || !run_backward(step, k, ZERO_RT_HINT_UNKNOWN))
    return 0;
  zero_rt_results results = {.struct_size = sizeof(results)};
  CALL("apply", zero_rt_step_apply(step, &learning_rate, 1, NULL));
  CALL("results", zero_rt_step_results(step, &results));
  return 1;
}

/* Prints a hash of all parameters. */
static int print_bits(zero_rt_runtime *runtime, zero_rt_step *step) {
  static _Thread_local uint16_t values[ELEMENTS];
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int32_t id = 0; id < ONE_NUM_PARAMETERS; ++id) {
    zero_rt_tensor view = {.struct_size = sizeof(view)};
    if (!use_unit(step, id - 1, id))
      return 0;
    CALL("parameter", zero_rt_step_parameter(step, id, &view));
    CALL("copy", zero_rt_copy(runtime, values, view.data, view.elements * 2));
    for (int64_t i = 0; i < view.elements; ++i)
      hash = (hash ^ values[i]) * UINT64_C(0x100000001b3);
    if (!leave_unit(step, id, id + 1))
      return 0;
  }
  printf("rank %d: bits: %016llx\n", me, (unsigned long long)hash);
  return 1;
}

static void print_shared(zero_rt_runtime *runtime) {
  zero_rt_counters counters = {.struct_size = sizeof(counters)};
  if (getenv("SHOW_SHARED") &&
      report("counters", zero_rt_read_counters(runtime, &counters)))
    printf("rank %d: shared: %lld\n", me, (long long)counters.shared_ranks);
}

static void run_rank(void) {
  zero_rt_options options = {
      .struct_size = sizeof(options), .timeout_ms = timeout_ms, .threads = 1};
  zero_rt_runtime *runtime = NULL;
  zero_rt_step *step = NULL;
  if (!report("runtime", zero_rt_create(group, me, &options, &runtime)))
    return;
  reach("create");
  const zero_rt_library *mine = is_fault("plan") ? other_library : library;
  if (!must_leave &&
      report("create", zero_rt_step_create(runtime, mine, NULL, &step))) {
    print_shared(runtime);
    int k = 0;
    while (k < STEPS && run_step(step, k))
      ++k;
    if (k == STEPS)
      (void)print_bits(runtime, step);
    else if (!must_leave)
      report("next", zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  }
  reach("destroy");
  if (step)
    report("destroy", zero_rt_step_destroy(step));
  report("destroy", zero_rt_destroy(runtime));
}

static void *run_thread(void *argument) {
  me = (int)(intptr_t)argument;
  run_rank();
  printf("rank %d: done: %.6f\n", me, now());
  return NULL;
}

#ifndef WITH_MPI
static void run_process(void) {
  zero_rt_tcp_options options = {.struct_size = sizeof(options)};
  if (!report("environment", zero_rt_tcp_environment(&options)))
    return;
  me = options.rank;
  options.timeout_ms = timeout_ms;
  reach("connect");
  if (must_leave ||
      !report("connect", zero_rt_tcp_group_create(&options, &group)))
    return;
  run_rank();
  reach("end");
  report("end", zero_rt_group_destroy(group));
}
#endif

static int run_threads(void) {
  pthread_t threads[ONE_RANKS];
  if (zero_rt_local_group_create(ONE_RANKS, &group) != ZERO_RT_OK)
    return 1;
  for (intptr_t rank = 0; rank < ONE_RANKS; ++rank)
    if (pthread_create(&threads[rank], NULL, run_thread, (void *)rank))
      return 1;
  for (int rank = 0; rank < ONE_RANKS; ++rank)
    pthread_join(threads[rank], NULL);
  return zero_rt_group_destroy(group) != ZERO_RT_OK;
}

/* KIND@MOMENT[.VISIT][+COUNT]:RANK */
static int parse_fault(const char *text) {
  int done = 0;
  if (sscanf(text, "%15[a-z]@%15[a-z]%n", fault.kind, fault.moment, &done) != 2)
    return 0;
  text += done;
  if (*text == '.')
    fault.visit = (int)strtol(text + 1, (char **)&text, 10);
  if (*text == '+')
    fault.count = (int)strtol(text + 1, (char **)&text, 10);
  if (*text != ':')
    return 0;
  fault.rank = (int)strtol(text + 1, (char **)&text, 10);
  return *text == 0;
}

static int open_library(const char *program, int folder, const char *name,
                        const zero_rt_library **out) {
  char path[4096];
  snprintf(path, sizeof(path), "%.*s/lib%s.so", folder, program, name);
  return report("open", zero_rt_open(path, out));
}

int main(int argc, char **argv) {
  if (argc != 5 || !strchr(argv[0], '/') || !parse_fault(argv[4]))
    return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  int folder = (int)(strrchr(argv[0], '/') - argv[0]);
  const char *other = strcmp(argv[2], "one") == 0 ? "two" : "one";
  if (!open_library(argv[0], folder, argv[2], &library) ||
      (strcmp(fault.kind, "plan") == 0 &&
       !open_library(argv[0], folder, other, &other_library)))
    return 2;
  timeout_ms = strtol(argv[3], NULL, 10);
  if (strcmp(argv[1], "threads") == 0)
    return run_threads();
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  reach("connect");
  if (report("connect", zero_rt_mpi_group_create_within(MPI_COMM_WORLD,
                                                        timeout_ms, &group))) {
    run_rank();
    report("end", zero_rt_group_destroy(group));
  }
  printf("rank %d: done: %.6f\n", me, now());
  /* MPI_Finalize waits for ranks that never come. */
  if (exit_code == 0)
    MPI_Finalize();
  else
    sleep_ms(0.5 * (double)timeout_ms);
#else
  run_process();
#endif
  return exit_code;
}
