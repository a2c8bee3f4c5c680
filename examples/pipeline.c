/*===- pipeline.c - Micro-batches through three pipeline stages -----------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* build/bin/zero-compile examples/pipeline.mlir -o out --stage=1
|* cc examples/pipeline.c -Iout -Iruntime/include -Lbuild/lib -lzero_rt \
|*    -lpthread -lm -o out/pipeline
|* LD_LIBRARY_PATH=build/lib out/pipeline out/libtrain.so 1f1b
|*
|* The model is linear and its numbers are small and whole, so every sum is
|* exact in any order. An embedding picks rows, a block maps them, a head takes
|* their products: loss = sum over rows of head[target] . (W embedding[token] +
b).
|* The program compares one step with a loop over all of it. With --stage=3 a
|* rank gathers the parameters of its stage for each forward and backward pass.
|*
\*===----------------------------------------------------------------------===*/

#include "train.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(TRAIN_RANKS == 6, "compile the step for pp=3, dp=2");

enum {
  STAGES = 3,
  COPIES = 2, /* of each stage, with micro-batches of their own */
  MICRO_BATCHES = 8,
  MAX_ROWS = 6,
  WIDTH = 6,
  VOCABULARY = 40
};

/* Ends the program with the message of the call that failed. */
#define CHECK(call)                                                            \
  do {                                                                         \
    zero_rt_status status_ = (call);                                           \
    if (status_ != ZERO_RT_OK) {                                               \
      fprintf(stderr, "%s: %s: %s\n", #call, zero_rt_status_name(status_),     \
              zero_rt_message());                                              \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/*===- The model ----------------------------------------------------------===*/

/* The parameters, or their gradients; a stage uses its own. */
typedef struct {
  float embedding[VOCABULARY][WIDTH];
  float weight[WIDTH][WIDTH];
  float bias[WIDTH];
  float head[VOCABULARY][WIDTH];
} Model;

typedef float Rows[MAX_ROWS][WIDTH];

static int rows_of(int copy, int m) { return (3 * m + 5 * copy) % MAX_ROWS; }
static int token(int copy, int m, int row) {
  return (7 * m + 11 * row + 13 * copy) % VOCABULARY;
}
static int target(int copy, int m, int row) {
  return (5 * m + 3 * row + 17 * copy + 1) % VOCABULARY;
}

static void initialize(Model *model) {
  float *values = (float *)model;
  for (size_t i = 0; i < sizeof(Model) / sizeof(float); ++i)
    values[i] = (float)((int)(i * 37 % 7) - 3);
}

static void forward_embedding(const Model *p, int copy, int m, Rows out) {
  for (int r = 0; r < rows_of(copy, m); ++r)
    memcpy(out[r], p->embedding[token(copy, m, r)], sizeof(out[r]));
}

static void forward_block(const Model *p, int rows, Rows in, Rows out) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < WIDTH; ++i) {
      out[r][i] = p->bias[i];
      for (int j = 0; j < WIDTH; ++j)
        out[r][i] += p->weight[i][j] * in[r][j];
    }
}

/* Gradients of |scale| times the loss are added to |g|. */
static void backward_head(const Model *p, Model *g, float scale, int copy,
                          int m, Rows in, Rows d_in) {
  for (int r = 0; r < rows_of(copy, m); ++r)
    for (int i = 0; i < WIDTH; ++i) {
      g->head[target(copy, m, r)][i] += scale * in[r][i];
      d_in[r][i] = scale * p->head[target(copy, m, r)][i];
    }
}

static void backward_block(const Model *p, Model *g, int rows, Rows in,
                           Rows d_out, Rows d_in) {
  memset(d_in, 0, sizeof(Rows));
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < WIDTH; ++i) {
      g->bias[i] += d_out[r][i];
      for (int j = 0; j < WIDTH; ++j) {
        g->weight[i][j] += d_out[r][i] * in[r][j];
        d_in[r][j] += p->weight[i][j] * d_out[r][i];
      }
    }
}

static void backward_embedding(Model *g, int copy, int m, Rows d_out) {
  for (int r = 0; r < rows_of(copy, m); ++r)
    for (int i = 0; i < WIDTH; ++i)
      g->embedding[token(copy, m, r)][i] += d_out[r][i];
}

/*===- The order of micro-batches -----------------------------------------===*/

typedef struct {
  int is_backward, micro_batch;
} Event;

/* GPipe: all forwards, then all backward passes, the last one first. */
static void order_gpipe(Event *events) {
  for (int m = 0; m < MICRO_BATCHES; ++m) {
    events[m] = (Event){0, m};
    events[2 * MICRO_BATCHES - 1 - m] = (Event){1, m};
  }
}

/* 1F1B: as many forwards as there are stages behind, then one of each. */
static void order_1f1b(Event *events, int stage) {
  int ahead = STAGES - 1 - stage, f = 0, b = 0, n = 0;
  while (b < MICRO_BATCHES) {
    if (f < MICRO_BATCHES && f <= b + ahead)
      events[n++] = (Event){0, f++};
    else
      events[n++] = (Event){1, b++};
  }
}

/* Any order, the same for all stages. */
static void order_random(Event *events, unsigned seed) {
  int state[MICRO_BATCHES] = {0};
  for (int n = 0; n < 2 * MICRO_BATCHES;) {
    seed = seed * 1664525u + 1013904223u;
    int m = (int)((seed >> 16) % MICRO_BATCHES);
    if (state[m] < 2)
      events[n++] = (Event){state[m]++, m};
  }
}

/*===- A rank -------------------------------------------------------------===*/

static zero_rt_group *group;
static const zero_rt_library *library;
static const char *schedule;
static Model initial, expected; /* before the step, and after it */
static double expected_norm;

static zero_rt_tensor tensor_of(void *data, int64_t elements) {
  return (zero_rt_tensor){sizeof(zero_rt_tensor),
                          ZERO_RT_F32,
                          ZERO_RT_SPACE_DEVICE,
                          0,
                          elements,
                          data};
}

static void send_rows(zero_rt_step *step, int32_t id, int m, Rows rows,
                      int count) {
  int64_t shape[] = {count, WIDTH};
  zero_rt_tensor tensor = tensor_of(rows, (int64_t)count * WIDTH);
  CHECK(zero_rt_step_send(step, id, m, &tensor, shape, NULL));
}

static int receive_rows(zero_rt_step *step, int32_t id, int m, Rows rows) {
  int64_t shape[2];
  CHECK(zero_rt_step_receive_shape(step, id, m, shape));
  zero_rt_tensor tensor = tensor_of(rows, shape[0] * WIDTH);
  CHECK(zero_rt_step_receive(step, id, m, &tensor, NULL));
  return (int)shape[0];
}

/* Where a parameter lies in a Model; its number of elements. */
static int64_t find(Model *model, int32_t id, float **out) {
  switch (id) {
  case TRAIN_PARAMETER_EMBEDDING:
    *out = model->embedding[0];
    return VOCABULARY * WIDTH;
  case TRAIN_PARAMETER_BLOCK_WEIGHT:
    *out = model->weight[0];
    return WIDTH * WIDTH;
  case TRAIN_PARAMETER_BLOCK_NORM:
    *out = model->bias;
    return WIDTH;
  default:
    *out = model->head[0];
    return VOCABULARY * WIDTH;
  }
}

static int stage_of(int32_t id) {
  return id == TRAIN_PARAMETER_EMBEDDING ? 0
         : id == TRAIN_PARAMETER_HEAD    ? 2
                                         : 1;
}

typedef struct {
  int stage, copy;
  zero_rt_step *step;
  Model parameters;
  Rows inputs[MICRO_BATCHES]; /* of the stage, kept for the backward pass */
  int rows[MICRO_BATCHES];
  int backwards;
} Rank;

/* Reads the parameters of the stage. At ZeRO stage 3 they are gathered first.
 */
static void open_parameters(Rank *rank) {
  int32_t unit = -1, last = -1;
  for (int32_t id = 0; id < TRAIN_NUM_PARAMETERS; ++id) {
    if (stage_of(id) != rank->stage)
      continue;
    CHECK(zero_rt_step_unit_of(rank->step, id, &unit));
    if (unit >= 0 && unit != last)
      CHECK(zero_rt_step_unshard(rank->step, unit, NULL));
    last = unit;
    zero_rt_tensor view = {.struct_size = sizeof(view)};
    CHECK(zero_rt_step_parameter(rank->step, id, &view));
    float *values;
    int64_t elements = find(&rank->parameters, id, &values);
    memcpy(values, view.data, (size_t)elements * sizeof(float));
  }
}

/* Releases what was gathered. A backward pass has no gradient of it left. */
static void close_parameters(Rank *rank) {
  int32_t unit = -1, last = -1;
  for (int32_t id = 0; id < TRAIN_NUM_PARAMETERS; ++id) {
    CHECK(zero_rt_step_unit_of(rank->step, id, &unit)); /* -1 if elsewhere */
    if (unit >= 0 && unit != last)
      CHECK(zero_rt_step_reshard(rank->step, unit, NULL));
    last = unit;
  }
}

static void forward(Rank *rank, int m) {
  static const int32_t from[] = {-1, TRAIN_ACTIVATION_EMBEDDED,
                                 TRAIN_ACTIVATION_HIDDEN};
  Rows out;
  open_parameters(rank);
  if (rank->stage > 0)
    rank->rows[m] =
        receive_rows(rank->step, from[rank->stage], m, rank->inputs[m]);
  if (rank->stage == 0) {
    rank->rows[m] = rows_of(rank->copy, m);
    forward_embedding(&rank->parameters, rank->copy, m, out);
    send_rows(rank->step, TRAIN_ACTIVATION_EMBEDDED, m, out, rank->rows[m]);
  } else if (rank->stage == 1) {
    forward_block(&rank->parameters, rank->rows[m], rank->inputs[m], out);
    send_rows(rank->step, TRAIN_ACTIVATION_HIDDEN, m, out, rank->rows[m]);
  }
  close_parameters(rank);
}

static void backward(Rank *rank, int m) {
  Model gradient;
  memset(&gradient, 0, sizeof(gradient));
  Rows d_out, d_in;
  open_parameters(rank);
  if (rank->stage == 2) {
    /* The mean over backward passes is the caller's part, as the step says. */
    backward_head(&rank->parameters, &gradient, 1.0f / MICRO_BATCHES,
                  rank->copy, m, rank->inputs[m], d_in);
    send_rows(rank->step, TRAIN_ACTIVATION_HIDDEN, m, d_in, rank->rows[m]);
  } else if (rank->stage == 1) {
    receive_rows(rank->step, TRAIN_ACTIVATION_HIDDEN, m, d_out);
    backward_block(&rank->parameters, &gradient, rank->rows[m], rank->inputs[m],
                   d_out, d_in);
    send_rows(rank->step, TRAIN_ACTIVATION_EMBEDDED, m, d_in, rank->rows[m]);
  } else {
    receive_rows(rank->step, TRAIN_ACTIVATION_EMBEDDED, m, d_out);
    backward_embedding(&gradient, rank->copy, m, d_out);
  }
  CHECK(zero_rt_step_begin_backward(rank->step, ZERO_RT_HINT_UNKNOWN));
  for (int32_t id = 0; id < TRAIN_NUM_PARAMETERS; ++id) {
    if (stage_of(id) != rank->stage)
      continue;
    float *data;
    int64_t elements = find(&gradient, id, &data);
    zero_rt_tensor tensor = tensor_of(data, elements);
    CHECK(zero_rt_step_gradient(rank->step, id, &tensor, NULL, NULL));
  }
  close_parameters(rank);
  if (++rank->backwards < MICRO_BATCHES)
    CHECK(zero_rt_step_accumulate(rank->step));
}

/* Ends the program unless the step did what the loop did. SGD rounds the rate
   and the sum: each by half of 2^-23. */
static void compare(Rank *rank, double norm) {
  if (norm != expected_norm) {
    fprintf(stderr, "norm %.17g, expected %.17g\n", norm, expected_norm);
    exit(1);
  }
  for (int32_t id = 0; id < TRAIN_NUM_PARAMETERS; ++id) {
    if (stage_of(id) != rank->stage)
      continue;
    float *values, *before, *after;
    find(&rank->parameters, id, &values);
    find(&initial, id, &before);
    int64_t elements = find(&expected, id, &after);
    for (int64_t i = 0; i < elements; ++i) {
      double value = values[i];
      double bound = (fabs(after[i]) + fabs(before[i])) * ldexp(1, -22);
      if (!(fabs(value - after[i]) <= bound)) {
        fprintf(stderr, "parameter %d[%lld] is %.9g, expected %.9g\n", id,
                (long long)i, value, after[i]);
        exit(1);
      }
    }
  }
}

static void *run_rank(void *argument) {
  int number = (int)(intptr_t)argument;
  Rank *rank = calloc(1, sizeof(Rank));
  if (!rank)
    exit(1);
  rank->stage = number / COPIES;
  rank->copy = number % COPIES;
  zero_rt_runtime *runtime;
  CHECK(zero_rt_create(group, number, NULL, &runtime));
  CHECK(zero_rt_step_create(runtime, library, NULL, &rank->step));
  for (int32_t id = 0; id < TRAIN_NUM_PARAMETERS; ++id) {
    if (stage_of(id) != rank->stage)
      continue;
    float *data;
    int64_t elements = find(&initial, id, &data);
    zero_rt_tensor tensor = tensor_of(data, elements);
    CHECK(zero_rt_step_bind_parameter(rank->step, id, &tensor));
  }

  Event events[2 * MICRO_BATCHES];
  if (strcmp(schedule, "gpipe") == 0)
    order_gpipe(events);
  else if (strcmp(schedule, "1f1b") == 0)
    order_1f1b(events, rank->stage);
  else
    order_random(events, (unsigned)atoi(schedule));
  for (int n = 0; n < 2 * MICRO_BATCHES; ++n)
    (events[n].is_backward ? backward : forward)(rank, events[n].micro_batch);

  const double learning_rate = 1;
  CHECK(zero_rt_step_apply(rank->step, &learning_rate, 1, NULL));
  zero_rt_results results = {.struct_size = sizeof(results)};
  CHECK(zero_rt_step_results(rank->step, &results));
  open_parameters(rank);
  compare(rank, results.values[TRAIN_RESULT_NORM]);
  close_parameters(rank);
  zero_rt_counters counters = {.struct_size = sizeof(counters)};
  CHECK(zero_rt_read_counters(runtime, &counters));
  printf("rank %d, stage %d: tensors sent %lld, with their extents %lld; "
         "reductions of scalars %lld\n",
         number, rank->stage, (long long)counters.activations_sent,
         (long long)counters.activation_headers_sent,
         (long long)counters.scalar_all_reduces);
  CHECK(zero_rt_step_destroy(rank->step));
  CHECK(zero_rt_destroy(runtime));
  free(rank);
  return NULL;
}

/* The same without stages, in whole numbers up to the norm. */
static void run_loop(void) {
  static Model gradient;
  for (int copy = 0; copy < COPIES; ++copy)
    for (int m = 0; m < MICRO_BATCHES; ++m) {
      Rows embedded, hidden, d_hidden, d_embedded;
      int rows = rows_of(copy, m);
      forward_embedding(&initial, copy, m, embedded);
      forward_block(&initial, rows, embedded, hidden);
      backward_head(&initial, &gradient, 1.0f / MICRO_BATCHES, copy, m, hidden,
                    d_hidden);
      backward_block(&initial, &gradient, rows, embedded, d_hidden, d_embedded);
      backward_embedding(&gradient, copy, m, d_embedded);
    }
  const size_t count = sizeof(Model) / sizeof(float);
  const float *g = (const float *)&gradient, *p = (const float *)&initial;
  double squares = 0;
  for (size_t i = 0; i < count; ++i)
    squares += (double)g[i] / COPIES * (g[i] / COPIES);
  expected_norm = sqrt(squares);
  double clip = expected_norm > 1 ? 1 / (expected_norm + 1e-6) : 1;
  for (size_t i = 0; i < count; ++i)
    ((float *)&expected)[i] = (float)(p[i] - clip * g[i] / COPIES);
}

int main(int argc, char **argv) {
  CHECK(train_open(argc > 1 ? argv[1] : "out/libtrain.so", &library));
  schedule = argc > 2 ? argv[2] : "1f1b";
  initialize(&initial);
  run_loop();
  pthread_t threads[TRAIN_RANKS];
  CHECK(zero_rt_local_group_create(TRAIN_RANKS, &group));
  for (intptr_t r = 0; r < TRAIN_RANKS; ++r)
    if (pthread_create(&threads[r], NULL, run_rank, (void *)r))
      return 1;
  for (int r = 0; r < TRAIN_RANKS; ++r)
    pthread_join(threads[r], NULL);
  CHECK(zero_rt_group_destroy(group));
  printf("%s: norm %.6f, as without stages\n", schedule, expected_norm);
  return 0;
}
