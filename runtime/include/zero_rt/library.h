//===- library.h - What a compiled step hands to the runtime ----*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled step consists of constant tables and a few functions. A row of a
// table is a struct of int64_t only. Therefore a table of 46 000 parameters is
// one flat constant for the compiler and one array for the runtime. Names are
// offsets into one blob of zero-terminated strings.
//
// A row has no size of its own, and never changes. A new column is a new table
// with as many rows, whose pointer is a new last field of zero_rt_library. The
// pointer is null in a library that was compiled before, and the runtime then
// does what it did before.
//
// The tables are the same on all ranks of a pipeline stage: shapes, offsets and
// segments describe a whole row of a bucket. The runtime localizes them to its
// rank in one place.
//
// Ranks are numbered row-major over the axes of a mesh. A set of axes has a bit
// per axis; the first axis is the lowest bit. Tables and calls refer to a set
// by its row in axis_sets. The ranks that differ only over the axes of a set
// form a process group, and are numbered in it in the order of their ranks.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_LIBRARY_H
#define ZERO_RT_LIBRARY_H

#include "zero_rt/abi.h"
#include "zero_rt/code.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The argument of a handler: the event that runs it.
typedef struct zero_rt_event {
  int32_t event;                // zero_rt_event_kind
  int32_t parameter;            // arrive only; else -1
  const zero_rt_tensor *tensor; // arrive only; else null
} zero_rt_event;

/// The events of the protocol.
typedef enum zero_rt_event_kind {
  ZERO_RT_EVENT_BEGIN = 0,
  ZERO_RT_EVENT_ARRIVE = 1,
  ZERO_RT_EVENT_ACCUMULATE = 2,
  ZERO_RT_EVENT_APPLY = 3,
  ZERO_RT_EVENT_DISCARD = 4,
  /// A begin with the hint that no other backward pass follows. If a state does
  /// not list it, it is a begin.
  ZERO_RT_EVENT_BEGIN_LAST = 5,
  /// Ends the backward passes, and computes what apply reports. Then apply or
  /// discard follows.
  ZERO_RT_EVENT_MEASURE = 6,
  /// Events of a unit of parameters, which run a handler of its row.
  ZERO_RT_EVENT_UNSHARD = 7,
  ZERO_RT_EVENT_RESHARD = 8,
  ZERO_RT_EVENT_COUNT = 9
} zero_rt_event_kind;

/// The streams of a step. Each is a queue of the rank's device, whose work runs
/// in order. The last one is of the caller: the stream that the caller passes
/// to the call that runs a handler. Only `record` and `wait` name it.
typedef enum zero_rt_step_stream {
  ZERO_RT_STREAM_COMPUTE = 0, // kernels, and all work without another stream
  ZERO_RT_STREAM_COLLECTIVE = 1,
  ZERO_RT_STREAM_TO_HOST = 2, // copies to the memory of the host
  ZERO_RT_STREAM_HOST = 3,    // kernels on the host
  ZERO_RT_STREAM_TO_DEVICE = 4,
  ZERO_RT_STREAM_CALLER = 5,
  ZERO_RT_STREAM_COUNT = 6
} zero_rt_step_stream;

/// A handler of a library that has them as functions. It runs program calls in
/// order, and stops at the first that fails.
typedef zero_rt_status (*zero_rt_handler_fn)(zero_rt_step *step,
                                             const zero_rt_event *event);

/// Runs the program calls that |count| numbers from |words| on stand for, in
/// order, and stops at the first that fails. |lists| are those of the library.
typedef zero_rt_status (*zero_rt_make_calls_fn)(zero_rt_step *step,
                                                const zero_rt_event *event,
                                                const int64_t *words,
                                                int64_t count,
                                                const int32_t *lists);

/// A handler of a library that has them as numbers: its part of call_words.
typedef struct zero_rt_handler_row {
  int64_t first;
  int64_t count;
} zero_rt_handler_row;

typedef struct zero_rt_parameter_row {
  int64_t name;           // offset into strings
  int64_t dtype;          // of the parameter
  int64_t gradient_dtype; // of an arriving gradient
  int64_t elements;       // the number that each rank holds
  int64_t bucket;         // -1: on another pipeline stage
  int64_t offset;         // of its first element in the bucket
  int64_t extent;         // the elements and their pad
  int64_t optional;       // 1: may be missing, and counts as zeros
  /// The number of pieces that a backward pass delivers, all or none; 1 unless
  /// declared. Or ZERO_RT_USES_ANY: one piece or more.
  int64_t uses;
} zero_rt_parameter_row;

/// A dimension of a parameter.
typedef struct zero_rt_dimension_row {
  int64_t extent; // of what each rank holds
  /// The axes that divide it, in the order of the mesh; -1: none.
  int64_t axes;
} zero_rt_dimension_row;

typedef struct zero_rt_bucket_row {
  int64_t name;
  int64_t elements;         // of a row, pads included
  int64_t gradient_buffer;  // gradients arrive here; not sharded
  int64_t parameter_buffer; // not sharded, except if the bucket is of a unit
  /// The master weights, sharded or not; -1 if the parameter is its own master
  /// weights. Between steps the parameter is the rounded master weights, unless
  /// state_write wrote other values to both, or the caller has written to the
  /// parameter and has not declared this yet (parameters_changed).
  int64_t master_buffer;
  int64_t store_kernel; // operands: arriving gradient, gradient buffer
  int64_t add_kernel;
  /// The buffer that the update writes if it runs in another space than the
  /// parameters: a copy of this rank's part of the parameters. Otherwise -1.
  int64_t staging_buffer;
  /// The axes over which ranks hold different rows, or no row of the bucket.
  /// -1: all ranks hold the same row.
  int64_t rows;
  /// The axes over which ranks must deliver the same gradients, or -1.
  int64_t replicated;
  /// Event lists [first, first + count). The first one has the events after
  /// which gradients may be written on the compute stream. The second one has
  /// the events after which the caller may read parameters. A |num_readable| of
  /// -1: parameters are written on the compute stream only.
  int64_t first_writable;
  int64_t num_writable;
  int64_t first_readable;
  int64_t num_readable;
} zero_rt_bucket_row;

/// A point in a stream. Handlers record it, and other streams wait for it.
typedef struct zero_rt_stream_event_row {
  int64_t name;
  int64_t stream; // zero_rt_step_stream
} zero_rt_stream_event_row;

typedef struct zero_rt_buffer_row {
  int64_t name;
  int64_t role;     // zero_rt_role, until set_role
  int64_t space;    // zero_rt_space
  int64_t dtype;    // zero_rt_dtype
  int64_t elements; // of a row
  int64_t owners; // the axes over whose ranks it is divided, or -1: not sharded
  int64_t on_demand; // 1: allocated by a handler; 0: lives as long as the step
  int64_t fill;      // bits of the f64 initial value; unused if on_demand
  int64_t shares;    // the buffer whose memory this one uses, or -1
} zero_rt_buffer_row;

/// Elements [begin, end) of a bucket. Kernels run on them with the scalars from
/// slot |scalars| on, or without scalars.
typedef struct zero_rt_segment_row {
  int64_t begin;
  int64_t end;
  int64_t scalars; // a scalar slot, or -1
} zero_rt_segment_row;

typedef struct zero_rt_table_row {
  int64_t first; // into segments
  int64_t count;
} zero_rt_table_row;

/// State of one role. If |bucket| >= 0, it is the state of a whole bucket, in
/// the buffer |index|. If |bucket| is -1, it is the scalar slot |index|.
typedef struct zero_rt_state_row {
  int64_t role; // name
  int64_t bucket;
  int64_t index;
} zero_rt_state_row;

/// Where the gradients of a bucket are summed between two backward passes.
typedef struct zero_rt_accumulator_row {
  int64_t buffer;
  /// The axes over which each rank has a sum of its own gradients, as bits.
  /// Over the other ones of |arrives| the sum is that of all ranks.
  int64_t partial;
  int64_t arrives; // the axes over which each rank has a gradient of its own
  /// The factor that gradients arrive with is numerator / denominator, times
  /// the number of backward passes and the number of tokens to these powers.
  /// Both are 0 if one is not below 2^62.
  int64_t numerator;
  int64_t denominator;
  int64_t passes_power;
  int64_t tokens_power;
} zero_rt_accumulator_row;

/// A unit of parameters, of which each rank keeps slices. It is gathered by the
/// handler |unshard| and given up by the handler |reshard|. Both are -1 if the
/// unit is on other pipeline stages.
typedef struct zero_rt_unit_row {
  int64_t name;
  int64_t unshard;
  int64_t reshard;
} zero_rt_unit_row;

/// What belongs to a bucket of a unit; -1 and -1 for other buckets.
typedef struct zero_rt_bucket_unit_row {
  int64_t unit;
  /// Where the caller reads the parameters while the unit is unsharded; -1:
  /// in the parameter buffer. If there is one, the parameter buffer is sharded.
  int64_t unsharded_buffer;
} zero_rt_bucket_unit_row;

/// A frozen parameter of a unit. No gradient of it arrives, so it is in no
/// bucket. Its number is that of its row behind the other parameters.
typedef struct zero_rt_frozen_row {
  int64_t name;
  int64_t dtype;
  int64_t elements; // the number that each rank reads
  int64_t unit;
  /// A slice, which no handler writes; -1: on another pipeline stage, as is
  /// then |unsharded_buffer|, and |offset| is 0.
  int64_t parameter_buffer;
  int64_t
      unsharded_buffer; // where the caller reads while the unit is unsharded
  int64_t offset;       // of the first element in both buffers
} zero_rt_frozen_row;

/// The order in which the buckets of a backward pass are closed: entries
/// [first, first + count). A bucket is closed by its handler when all its
/// gradients have arrived and the earlier buckets are closed. In a library with
/// units a bucket is complete when its unit is resharded, and not before. A
/// bucket is open when the earlier buckets whose gradients use the same memory
/// are closed. Gradients of a bucket that is not open yet wait. |scratch| is 1
/// if no handler reads the gradient buffer of a closed bucket.
typedef struct zero_rt_sequence_row {
  int64_t first;
  int64_t count;
  int64_t reserved;
  int64_t scratch;
} zero_rt_sequence_row;

typedef struct zero_rt_sequence_entry {
  int64_t bucket;
  int64_t handler;
} zero_rt_sequence_entry;

/// In |state|, |event| runs |count| handlers from |first| on, and then leads to
/// state |next|. Events that are not listed are refused. With a |sequence| (-1:
/// none), an arrival runs the handlers when its bucket is open, and then
/// advances the sequence. Other events first run the sequence to its end.
typedef struct zero_rt_transition_row {
  int64_t state;
  int64_t event;
  int64_t next;
  int64_t first;
  int64_t count;
  int64_t sequence;
} zero_rt_transition_row;

/// The initial value (bits of an f64) of one scalar slot.
typedef struct zero_rt_slot_row {
  int64_t name;
  int64_t initial;
} zero_rt_slot_row;

/// What the runtime demands of an input on each rank. It refuses the step if
/// the input is otherwise.
typedef enum zero_rt_input_check {
  ZERO_RT_INPUT_FREE = 0,    // only results depend on it, or it is the tokens
  ZERO_RT_INPUT_FINITE = 1,  // updates depend on it
  ZERO_RT_INPUT_POSITIVE = 2 // positive and finite: the max of a clip
} zero_rt_input_check;

/// A scalar that the caller passes to apply.
typedef struct zero_rt_input_row {
  int64_t slot; // receives the value
  /// Axes over which each rank passes an addend of its own. -1: all ranks pass
  /// the same value.
  int64_t over;
  int64_t tokens; // 1: gradients are divided by it; 0: any other input
  int64_t check;  // zero_rt_input_check
  int64_t name;   // of the hyperparameter; may be empty
} zero_rt_input_row;

/// An activation. The ranks at coordinate |from| of an axis send it to the
/// ranks at |to|, which send its gradient back.
typedef struct zero_rt_activation_row {
  int64_t name;
  int64_t dtype;
  int64_t axis;
  int64_t from;
  int64_t to;
  int64_t num_dims;
  int64_t dims[8]; // -1: sent with each micro-batch; 0 behind the last
} zero_rt_activation_row;

/// A scalar that apply reports.
typedef struct zero_rt_result_row {
  int64_t name;
  int64_t slot;
} zero_rt_result_row;

typedef struct zero_rt_axis_row {
  int64_t name;
  int64_t size;
} zero_rt_axis_row;

/// Grows at its end. The first two fields never change.
struct zero_rt_library {
  uint32_t struct_size;
  uint32_t abi_version; // that the library was compiled for
  uint64_t plan_hash;
  int64_t ranks; // the number of ranks of this plan
  /// The CPU features that this code uses: LLVM names, separated by commas
  /// ("avx2,fma").
  const char *cpu_features;
  const char *name;
  const char *strings;

  int64_t num_axes;
  const zero_rt_axis_row *axes; // of the mesh; their product is ranks
  int64_t num_axis_sets;
  const int64_t *axis_sets; // bits, never 0
  /// For each set, the pipeline stages whose ranks take part, a bit per stage;
  /// 0: all of them.
  const int64_t *axis_set_stages;
  int64_t num_parameters;
  const zero_rt_parameter_row *parameters;
  int64_t num_buckets;
  const zero_rt_bucket_row *buckets;
  int64_t num_buffers;
  const zero_rt_buffer_row *buffers;
  int64_t num_segments;
  const zero_rt_segment_row *segments;
  int64_t num_tables;
  const zero_rt_table_row *tables;
  int64_t num_states;
  const zero_rt_state_row *states;
  int64_t num_slots;
  const zero_rt_slot_row *slots;
  int64_t num_inputs;
  const zero_rt_input_row *inputs;
  int64_t num_results;
  const zero_rt_result_row *results;
  int64_t loss_scale; // its slot, or -1: losses are not scaled

  int64_t num_kernels;
  const zero_rt_kernel_fn *kernels;
  int64_t num_scalar_programs;
  const zero_rt_scalar_fn *scalar_programs;
  int64_t num_handlers;
  const zero_rt_handler_fn *handlers; // null if there is a make_calls
  /// Names of the protocol's states, as offsets into strings; state 0 is the
  /// initial one.
  int64_t num_protocol_states;
  const int64_t *protocol_states;
  int64_t num_transitions;
  const zero_rt_transition_row *transitions;
  const int64_t *transition_handlers; // indices into handlers
  int64_t num_sequences;
  const zero_rt_sequence_row *sequences;
  int64_t num_sequence_entries;
  const zero_rt_sequence_entry *sequence_entries;
  int64_t num_activations;
  const zero_rt_activation_row *activations;
  int64_t num_stream_events;
  const zero_rt_stream_event_row *stream_events;
  int64_t num_event_lists;
  const int64_t *event_lists; // stream events

  /// If parameters live on pipeline stages, one library for each stage: for
  /// each combination of coordinates over |stage_axes| (bits), row-major. The
  /// first library is the one that has this list; the others have none. Axes,
  /// axis sets, parameters, slots, inputs, results and activations have the
  /// same numbers in all of these libraries, and so have units and frozen
  /// parameters. num_stages 0: all ranks run this library.
  int64_t stage_axes;
  int64_t num_stages;
  const zero_rt_library *const *stages;

  /// The code for a GPU in a library of version 15, else null.
  const void *device_code;
  /// Since version 16. The same kernels and scalar programs for other devices
  /// than the CPU.
  int64_t num_executables;
  const zero_rt_executable *executables;
  /// Since version 16. Units of parameters that ranks shard, and a row for each
  /// bucket. num_units 0: each rank keeps all its parameters.
  int64_t num_units;
  const zero_rt_unit_row *units;
  const zero_rt_bucket_unit_row *bucket_units;
  /// Since version 16.
  int64_t num_frozen;
  const zero_rt_frozen_row *frozen;
  /// Since version 16. Orders in which the caller unshards units: |num_units|
  /// numbers for each, all different. No two orders begin with the same unit.
  /// Units of other pipeline stages are passed over.
  /// num_unit_orders 0: any order. For each order, how many units are gathered
  /// ahead of the one in use.
  int64_t num_unit_orders;
  const int64_t *unit_orders;
  const int64_t *unit_prefetches;
  /// Since version 16. The shapes of parameters: dimension_ends[p] is behind
  /// the last dimension of parameter p. Only the first library of stages has
  /// them. num_dimensions 0: shapes are not known.
  int64_t num_dimensions;
  const zero_rt_dimension_row *dimensions;
  const int64_t *dimension_ends;
  /// Since version 16. A row for each bucket; or null: checkpoints are saved
  /// between steps only.
  const zero_rt_accumulator_row *accumulators;
  /// Since version 16. How many ranks have batches of their own. Other ranks
  /// work on the same batch as one of these. 0: not known.
  int64_t batch_ranks;
  /// Since version 16. Handlers as numbers, a row for each. Only make_calls, a
  /// function of the library, knows what the numbers stand for. make_calls
  /// null: handlers are functions.
  zero_rt_make_calls_fn make_calls;
  const zero_rt_handler_row *handler_calls;
  int64_t num_call_words;
  const int64_t *call_words;
  const int32_t *call_lists;
  /// Since version 16. The names of inputs in the step, in |strings|; may be
  /// empty. Null: inputs have no names.
  const int64_t *input_names;
  /// Since version 16. Sets of inputs, each a bit per input in as few words as
  /// hold them, and for each parameter on these pipeline stages the set of the
  /// inputs on which its update depends. num_input_sets 0: not known.
  int64_t num_input_sets;
  const int64_t *input_sets;
  const int64_t *parameter_inputs; // rows of input_sets
};

/// A library exports one symbol, a pointer to its zero_rt_library.
#define ZERO_RT_LIBRARY_SYMBOL "zero_rt_compiled_step"

/// The last bytes of a file that zero-compile writes, behind the ELF image.
/// Never changes.
typedef struct zero_rt_file_end {
  char magic[8]; // ZERO_RT_FILE_MAGIC, without a terminator
  uint32_t abi_version;
  uint32_t reserved;
  uint64_t bytes; // of the file, without this struct
  uint64_t hash;  // XXH3 of these bytes, 64 bits, without a seed
} zero_rt_file_end;

#define ZERO_RT_FILE_MAGIC "zerostep"

// The types of the arguments of program calls.
#define ZERO_RT_ARGUMENT(TYPE, NAME) typedef TYPE NAME;
#include "zero_rt/arguments.def"

/// The table of calls. The first word of a runtime and of a step points to it.
/// It grows at its end.
struct zero_rt_calls {
  uint32_t struct_size;
  uint32_t abi_version;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) zero_rt_status(*NAME) ARGUMENTS;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) zero_rt_status(*NAME) ARGUMENTS;
#include "zero_rt/calls.def"
};

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_LIBRARY_H
