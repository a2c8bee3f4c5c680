//===- step.h - The interface of clients to compiled steps ------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One set of functions for every compiled step. A client links libzero_rt only,
// and opens libraries by path. It takes names and numbers from the header that
// zero-compile wrote, or asks for them at run time:
//
//   const zero_rt_library *library;
//   train_open("out/libtrain.so", &library); // of train.h; or zero_rt_open
//   zero_rt_step *step;
//   zero_rt_step_create(runtime, library, NULL, &step);
//   zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN);
//   zero_rt_step_gradients(step, numbers, tensors, count, stream, NULL);
//   zero_rt_step_apply(step, inputs, num_inputs, stream);
//
// A null handle is invalid_argument. abi.h says what all calls have in common.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_STEP_H
#define ZERO_RT_STEP_H

#include "zero_rt/abi.h"
#include "zero_rt/code.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// Opens a library that zero-compile wrote. The call compares the content of
/// the file with the hash at the end of the file before any of its code runs,
/// and loads the content that it has read. So the file may change or go
/// afterwards. Ranks compare the hashes of their files when they create a step.
/// A content that is open already is not loaded again. Errors: invalid_argument
/// (no such file, the file is no compiled step, or its content was damaged or
/// truncated), unsupported (this runtime does not accept the ABI version of the
/// library). Ownership:
/// the library stays open until the process ends. Any thread may call this.
zero_rt_status zero_rt_open(const char *path,
                            const zero_rt_library **out_library);
/// As zero_rt_open, for a program with the header of a step. |plan_hash| is the
/// one in the header. Errors: also invalid_argument (the library has another
/// plan, so its numbers are others).
zero_rt_status zero_rt_open_plan(const char *path, uint64_t plan_hash,
                                 const zero_rt_library **out_library);

typedef struct zero_rt_library_info {
  uint32_t struct_size;
  int32_t ranks; // the number of ranks of the plan
  const char *name;
  uint64_t plan_hash;
  uint64_t content_hash; // of the file; 0 if zero_rt_open did not open it
  int32_t num_parameters;
  int32_t num_inputs;
  int32_t num_results;
  int32_t num_activations;
  int32_t num_axes;
  int32_t has_loss_scale;
  /// Since version 16. Executables for other devices than the CPU; 0 for a
  /// library of version 15.
  int32_t num_executables;
  /// Since version 16. Frozen parameters, which ranks shard with their units at
  /// stage 3. Their numbers begin at num_parameters.
  int32_t num_frozen;
} zero_rt_library_info;

typedef struct zero_rt_parameter_info {
  uint32_t struct_size;
  int32_t dtype;          // zero_rt_dtype
  int32_t gradient_dtype; // of an arriving gradient; -1: frozen, none arrives
  int32_t optional;       // 1: a gradient may be missing, and counts as zeros
  const char *name;
  int64_t elements; // the number that a rank holds
  int64_t uses;     // the pieces of a backward pass, or ZERO_RT_USES_ANY
} zero_rt_parameter_info;

typedef struct zero_rt_input_info {
  uint32_t struct_size;
  int32_t is_tokens;   // 1: gradients are divided by its sum over the ranks
  int32_t is_addend;   // 1: each rank passes an addend of its own
  int32_t is_hyper;    // 1: updates depend on it, so it must be finite
  const char *name;    // of the hyperparameter; may be empty
  int32_t is_positive; // 1: it must be positive and finite: the max of a clip
  int32_t reserved;
  /// Since version 16. Its name in the step, which no other input has; empty
  /// if the step gives it none, and for a library of version 15.
  const char *argument;
} zero_rt_input_info;

typedef struct zero_rt_result_info {
  uint32_t struct_size;
  int32_t reserved;
  const char *name;
} zero_rt_result_info;

typedef struct zero_rt_activation_info {
  uint32_t struct_size;
  int32_t dtype; // zero_rt_dtype
  const char *name;
  int32_t axis; // of the mesh: ranks at |from| send to ranks at |to|
  int32_t from;
  int32_t to;
  int32_t num_dims;
  int64_t dims[8]; // -1: sent with each micro-batch
} zero_rt_activation_info;

typedef struct zero_rt_axis_info {
  uint32_t struct_size;
  int32_t size;
  const char *name;
} zero_rt_axis_info;

/// Describes |library|, or its row |number|. Set out_info->struct_size first.
/// Errors: invalid_argument (|number| is out of range). Ownership: names belong
/// to the library.
zero_rt_status zero_rt_library_describe(const zero_rt_library *library,
                                        zero_rt_library_info *out_info);
zero_rt_status zero_rt_library_parameter(const zero_rt_library *library,
                                         int32_t number,
                                         zero_rt_parameter_info *out_info);
zero_rt_status zero_rt_library_input(const zero_rt_library *library,
                                     int32_t number,
                                     zero_rt_input_info *out_info);
/// Finds the input that is the hyperparameter |hyper|, such as "lr", of
/// parameter |number|: of the inputs on which its update depends, the first one
/// that is this hyperparameter. *out_input is -1 if there is none, as where it
/// is a constant of the step, and if the parameter is frozen. Parameters of one
/// group have the same inputs. Errors: invalid_argument (|number| is out of
/// range), unsupported (the library does not say it, as one of version 15).
/// Since version 16.
zero_rt_status zero_rt_library_hyper(const zero_rt_library *library,
                                     int32_t number, const char *hyper,
                                     int32_t *out_input);
zero_rt_status zero_rt_library_result(const zero_rt_library *library,
                                      int32_t number,
                                      zero_rt_result_info *out_info);
zero_rt_status zero_rt_library_activation(const zero_rt_library *library,
                                          int32_t number,
                                          zero_rt_activation_info *out_info);
/// Axes of the mesh. Ranks are numbered row-major over them.
zero_rt_status zero_rt_library_axis(const zero_rt_library *library,
                                    int32_t number,
                                    zero_rt_axis_info *out_info);

/// Since version 16.
zero_rt_status zero_rt_library_executable(const zero_rt_library *library,
                                          int32_t number,
                                          zero_rt_executable *out_executable);

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Creates the step on this rank. Collective: every rank of the runtime's
/// process group makes this call with the same library. Checks the ABI version
/// and the CPU features, and compares the plans of all ranks. Waits for the
/// other ranks, at most for the timeout of the runtime. |options| is reserved:
/// pass null. Ownership: the caller destroys the step before its runtime.
zero_rt_status zero_rt_step_create(zero_rt_runtime *runtime,
                                   const zero_rt_library *library,
                                   const void *options,
                                   zero_rt_step **out_step);
/// Frees the step. Waits until the other ranks have received the activations
/// that this rank sent, at most for the timeout.
zero_rt_status zero_rt_step_destroy(zero_rt_step *step);

/// The number of the parameter called |name|. Frozen parameters of units have
/// numbers at stage 3: bind_parameter, parameter, parameter_wait and unit_of
/// take them, and all other functions return invalid_argument. The message of
/// an error suggests the nearest name.
zero_rt_status zero_rt_step_find_parameter(zero_rt_step *step, const char *name,
                                           int32_t *out_parameter);
/// Sets this rank's part of a parameter, and the master weights that this rank
/// owns: the whole parameter, or a slice if the parameter is sharded (in the
/// parameter's dtype, row-major). Ranks that hold the same part pass the same
/// values. Only between steps. The call follows the work on the default stream.
/// Work of other streams on the tensor and on views of the parameter must be
/// done.
zero_rt_status zero_rt_step_bind_parameter(zero_rt_step *step,
                                           int32_t parameter,
                                           const zero_rt_tensor *tensor);
/// For callers that write to views of parameters (`parameter`), as torch does
/// with load_state_dict, init functions and `.data`. The caller writes, and
/// then calls this before it measures or applies the step, whose update then
/// starts from the new values. Otherwise the step overwrites the values of a
/// parameter that has master weights.
///
/// |parameters| has the numbers of |count| parameters. Null, with a |count| of
/// 0, stands for every parameter of this rank. An element has changed if its
/// bits are not those of its rounded master weight (nan equals nan, and -0 is
/// not 0). The master weights of changed elements become their values. All
/// other master weights keep all their bits, so the call may be repeated, and
/// may be made if nothing was written. |out_elements|, which may be null, gets
/// the number of changed elements whose master weights this rank has. A
/// parameter without master weights needs no call: its values are the state. A
/// parameter of a unit at stage 3 has no view between steps, and is left out.
///
/// Allowed between steps, and within one until it is measured. The call follows
/// the work on |stream|, and waits for it.
/// Not collective: ranks that hold the same part of a parameter write the same
/// to it, and each makes the call. The call is no write of state: after a
/// state_write of divided "master" alone, the next backward pass is an error
/// still. Since version 16. Errors: invalid_argument (a number is out of range,
/// is listed twice, or is of another pipeline stage; |count| is negative;
/// |parameters| is null and |count| is not 0), protocol (the step was
/// measured). After these errors nothing has changed. Ownership: the list is
/// read during the call only.
zero_rt_status zero_rt_step_parameters_changed(zero_rt_step *step,
                                               const int32_t *parameters,
                                               int64_t count,
                                               zero_rt_stream *stream,
                                               int64_t *out_elements);
/// A view of this rank's part of a parameter, valid until destroy. Exception: a
/// parameter of a unit at stage 3 has a view while the unit is unsharded, which
/// is read-only and ends with `reshard`. Errors: protocol (its unit is
/// sharded). The view is current after apply; on a GPU, for work on a stream
/// after parameter_wait, and for zero_rt_copy. The caller may write to it, on a
/// GPU in work on a stream after parameter_wait, and then calls
/// parameters_changed. From measure until the step has been applied or
/// discarded, the view is read-only.
zero_rt_status zero_rt_step_parameter(zero_rt_step *step, int32_t parameter,
                                      zero_rt_tensor *out_view);
/// Makes |stream| wait until a parameter (-1: every parameter) may be read.
zero_rt_status zero_rt_step_parameter_wait(zero_rt_step *step,
                                           int32_t parameter,
                                           zero_rt_stream *stream);

/// The number of the unit called |name|. At stage 3 each rank keeps a slice of
/// the parameters of a unit. Since version 16. Errors: invalid_argument (there
/// is no such unit; a step of another stage has none).
zero_rt_status zero_rt_step_find_unit(zero_rt_step *step, const char *name,
                                      int32_t *out_unit);
/// The number of the unit of a parameter, or -1 if the parameter is of no unit
/// or each rank keeps all of it. Since version 16.
zero_rt_status zero_rt_step_unit_of(zero_rt_step *step, int32_t parameter,
                                    int32_t *out_unit);
/// Gathers the parameters of a unit ahead of `unshard`, which then finds them
/// under way: the collective runs beside the caller's work. Collective, as
/// `unshard`. Does nothing if the unit is gathered already, or if a unit in use
/// has its memory. A unit that was gathered ahead and is not used gives way to
/// what needs its memory or changes parameters. Since version 16. Errors:
/// invalid_argument (no such unit), protocol (the step was measured).
///
/// If the step declares the order of units (`zero.unit_order`, `zero-compile
/// --unit-order=declared`), `unshard` gathers the next units ahead itself.
zero_rt_status zero_rt_step_prefetch(zero_rt_step *step, int32_t unit);
/// Gathers the parameters of a unit. Later work on |stream| may read them
/// (`parameter`), and so may work on other streams that the caller orders
/// behind it. Their values are those after the last apply. Allowed between
/// steps and in backward passes, and not between measure and apply.
///
/// Collective: all ranks make the same sequence of calls of prefetch, unshard
/// and reshard among their other calls of the step. Two units can be unsharded
/// at once if they are consecutive, in the order in which the step declares
/// them: one that is in use, and the next one, or more if the step gathers more
/// ahead (`--prefetch-units`). Since version 16. Errors:
/// invalid_argument (no such unit), protocol (the unit is unsharded; another
/// unsharded unit uses its memory; another unit follows in the order that the
/// step declares; the step was measured).
///
/// An order that the step declares goes on to its end, except that it begins
/// anew with its first unit, and ends with apply and discard. One that has
/// begun in a backward pass ends with it, or where another order begins. Units
/// that are unsharded already are passed over.
zero_rt_status zero_rt_step_unshard(zero_rt_step *step, int32_t unit,
                                    zero_rt_stream *stream);
/// Ends the views of the parameters of a unit. Earlier work on |stream| is the
/// last that reads them. In a backward pass the call also ends the gradients of
/// the unit: those that have not arrived are missing, and those that arrive
/// later are errors. Collective in a backward pass, where it reduces gradients.
/// apply, measure, discard, bind_parameter, state_write and load are errors
/// while a unit is unsharded. Since version 16. Errors: invalid_argument (no
/// such unit), protocol (the unit is sharded).
zero_rt_status zero_rt_step_reshard(zero_rt_step *step, int32_t unit,
                                    zero_rt_stream *stream);

/// Begins a backward pass. |hint| is a zero_rt_hint.
zero_rt_status zero_rt_step_begin_backward(zero_rt_step *step, int32_t hint);
/// Takes the gradient of this rank's part of one parameter in the open backward
/// pass, after the work on |stream|. The caller may reuse the tensor from the
/// timepoint |out_release| on. That timepoint is 0, or a later one if the
/// gradient waits for its bucket or for a GPU. The wait for a bucket ends at
/// the latest with the backward pass.
///
/// If |out_release| is null, the caller may reuse the tensor at once; on a GPU,
/// later work on |stream| may. The runtime then copies a gradient that waits
/// for its bucket into memory of role staging.
///
/// At stage 2 the call may run collectives. Ranks that have several steps on
/// one process group make the calls of these steps in the same order.
zero_rt_status zero_rt_step_gradient(zero_rt_step *step, int32_t parameter,
                                     const zero_rt_tensor *tensor,
                                     zero_rt_stream *stream,
                                     zero_rt_timepoint *out_release);
/// As `gradient` for |count| parameters, in order. All arguments are checked
/// first: if one is wrong, no gradient is taken. |out_releases| is null, or has
/// |count| timepoints, one for each tensor. A parameter that is delivered in
/// several pieces may occur several times. If the number of pieces is not known
/// (`uses any`), the gradient is complete when the backward pass ends.
///
/// On a GPU the gradients whose bucket is open share one wait for |stream|, one
/// launch for each bucket and type, and one timepoint.
zero_rt_status zero_rt_step_gradients(zero_rt_step *step,
                                      const int32_t *parameters,
                                      const zero_rt_tensor *tensors,
                                      int64_t count, zero_rt_stream *stream,
                                      zero_rt_timepoint *out_releases);
/// For producers that write gradients in place, in later work on |stream|.
/// Returns a gradient view. Overwrite the view if |out_beta| is 0, add to it if
/// |out_beta| is 1, and then call gradient_ready. A gradient view has the dtype
/// in which the gradient arrives. Errors: unsupported (the gradient is kept in
/// another dtype).
zero_rt_status zero_rt_step_gradient_slot(zero_rt_step *step, int32_t parameter,
                                          zero_rt_stream *stream,
                                          zero_rt_tensor *out_slot,
                                          double *out_beta);
/// The gradient view of a parameter has been written, or is written by the work
/// on |stream|.
zero_rt_status zero_rt_step_gradient_ready(zero_rt_step *step,
                                           int32_t parameter,
                                           zero_rt_stream *stream);
/// As gradient, for concurrent backward passes: for the backward pass with
/// number |backward|, counted from 0 since the last apply or discard. The first
/// gradient of a backward pass begins it. The gradient waits while an earlier
/// backward pass has not ended.
zero_rt_status zero_rt_step_gradient_of(zero_rt_step *step, int64_t backward,
                                        int32_t parameter,
                                        const zero_rt_tensor *tensor,
                                        zero_rt_stream *stream,
                                        zero_rt_timepoint *out_release);
/// All gradients of the backward pass with number |backward| have arrived.
/// apply ends the last backward pass itself.
zero_rt_status zero_rt_step_end_backward(zero_rt_step *step, int64_t backward);
/// Closes the open backward pass. Another backward pass follows before apply.
zero_rt_status zero_rt_step_accumulate(zero_rt_step *step);
/// Drops the gradients and the activations since the last apply, on every rank.
zero_rt_status zero_rt_step_discard(zero_rt_step *step);

/// Computes what apply would report, for callers that ask for the norm of the
/// gradients before they decide. Closes the open backward pass, if there is
/// one, and reduces over the ranks, after the work on |stream|. Collective:
/// all ranks make the call before apply, or none does. `results` then returns
/// the results and the outcome. The next call is apply, which updates, or
/// discard; parameters may be read. With an apply that follows, the step
/// computes the same bits as with apply alone, and makes the same collectives.
/// |inputs| are those of apply. Since version 16. Errors: also protocol (the
/// step was compiled for an earlier version).
zero_rt_status zero_rt_step_measure(zero_rt_step *step, const double *inputs,
                                    int32_t num_inputs, zero_rt_stream *stream);
/// Closes the open backward pass, if there is one, reduces over the ranks and
/// updates, after the work on |stream|. Collective. The call does not wait for
/// the result. |inputs| are the scalar arguments of the step, in order: the
/// same on every rank, or an addend of each rank if the step says so. If an
/// input that updates depend on is nan or infinite on any rank, or is not the
/// same on all ranks, all ranks refuse the step. No message is sent to compare
/// inputs: digests of them travel in a sum that is computed anyway. An input
/// that is only reported may be nan or infinite, and is not compared.
/// After measure, |inputs| is null and |num_inputs| 0, or the inputs are those
/// of measure.
///
/// A step that is skipped or refused changes no parameter and no state, except
/// for a loss scale and for schedules that advance on skipped steps. Its
/// gradients are dropped, and the next call is begin_backward.
zero_rt_status zero_rt_step_apply(zero_rt_step *step, const double *inputs,
                                  int32_t num_inputs, zero_rt_stream *stream);
/// Waits for the last measure or apply. Set out_results->struct_size first. The
/// results of measure are also those of the apply that follows. A skipped step
/// is an outcome and returns ok; with find_nonfinite the message says why the
/// step was skipped. A refused step returns missing_gradient, mismatch,
/// nonfinite or invalid_argument, and the message names parameters or inputs,
/// and ranks. |out_results| is filled in all these cases.
zero_rt_status zero_rt_step_results(zero_rt_step *step,
                                    zero_rt_results *out_results);
/// The number of closed backward passes since the last apply or discard: how
/// many a step has behind it after `load` of a checkpoint that was saved within
/// a step. Since version 16.
zero_rt_status zero_rt_step_backward_passes(zero_rt_step *step,
                                            int64_t *out_count);
/// Waits until all ranks make this call. A caller makes it before work that the
/// ranks do together by other means, such as a gather of torch.distributed. A
/// rank that does something else then learns of it at once, and not when that
/// work ends by its own timeout. |work| names it in messages: 1 to 127
/// characters. Errors: mismatch (a rank is in another call, or names other
/// work), timeout. Since version 16.
zero_rt_status zero_rt_step_meet(zero_rt_step *step, const char *work);
/// The factor by which the caller multiplies the loss of the next backward
/// pass. It is 1 if the step has no loss scale. Otherwise the call waits for
/// the last apply, and the factor is the same until the next apply. Not between
/// measure and what follows it.
zero_rt_status zero_rt_step_loss_scale(zero_rt_step *step, double *out_scale);

/// The number of state entries on this rank, for checkpoints. An entry is
/// (parameter, role, interval of the elements of the parameter that this rank
/// holds), and does not depend on buckets.
zero_rt_status zero_rt_step_state_count(zero_rt_step *step, int64_t *out_count);
/// Describes entry |entry|. Set out_entry->struct_size first.
zero_rt_status zero_rt_step_state_describe(zero_rt_step *step, int64_t entry,
                                           zero_rt_state_entry *out_entry);
/// Copies an entry to |out_data|. |bytes| is exactly the size of the entry. Not
/// between measure and what follows it.
zero_rt_status zero_rt_step_state_read(zero_rt_step *step, int64_t entry,
                                       void *out_data, int64_t bytes);
/// Copies |data| to an entry. Only between steps. A checkpoint may be written
/// in any order: each entry keeps the values that were written. Writing
/// "master" alone also sets "parameter", rounded, and writing "parameter" alone
/// also sets "master". If "master" is divided over ranks, a rank lacks the
/// other slices, and a write of "master" alone makes the next backward pass an
/// error (protocol): write "parameter", too, on every rank.
zero_rt_status zero_rt_step_state_write(zero_rt_step *step, int64_t entry,
                                        const void *data, int64_t bytes);

/// Writes all state of all ranks to |folder|, which all ranks see: a file of
/// the format safetensors for each rank, and an index (docs/checkpoints.md).
/// The folder is created if its parent exists. |number| is a number of the
/// caller, at least 0 and the same on all ranks, such as that of applied steps;
/// load returns it. Collective, between steps and between two backward passes
/// of a step, if it was compiled for several.
///
/// Between two backward passes (after `accumulate`, and before the next
/// begin_backward) the checkpoint also has the sums of the gradients so far.
/// All ranks have made the same number of backward passes, none was begun as
/// the last, and no gradient is missing. Else the call is an error (protocol or
/// mismatch).
///
/// A step has a folder of its own. A caller that wrote to views of parameters
/// calls parameters_changed before it saves.
///
/// The files are on the disk when the call returns. A checkpoint that is in the
/// folder already stays whole until the new one is, and is then removed. So if
/// the call fails, or the process ends, the folder has the previous checkpoint
/// or the new one. A failure of one rank, such as a full disk, is an error on
/// all ranks, and the message names the rank. The step may then go on.
///
/// A rank waits for the others at most for the timeout. Therefore the times
/// that the ranks need to write their files must not differ by more. Since
/// version 16. Errors: invalid_argument (a file could not be written, or the
/// folder has a damaged index), mismatch (ranks pass different numbers),
/// protocol.
zero_rt_status zero_rt_step_save(zero_rt_step *step, const char *folder,
                                 int64_t number);
/// As save, and lets training go on while the files are written: copies the
/// state of this rank to memory of the host, which counters do not count, and
/// starts a thread that writes the copies. save_end makes them the checkpoint.
/// Until then the folder has the previous one, and the step takes no other
/// save. A step that is destroyed before save_end drops the save, and the next
/// save to the folder removes the files. Since
/// version 16. Errors: as save.
zero_rt_status zero_rt_step_save_begin(zero_rt_step *step, const char *folder,
                                       int64_t number);
/// Waits until the files of save_begin are on the disk, and replaces the
/// previous checkpoint. Collective, between steps and between two backward
/// passes; elsewhere an error (protocol), and the save goes on. Any other error
/// drops the save. Since version 16. Errors: as save; also protocol (no save
/// has begun).
zero_rt_status zero_rt_step_save_end(zero_rt_step *step);
/// Reads all state from a checkpoint that save has written, with any number of
/// ranks, any ZeRO stage, any buckets and any pipeline stages. Parameters,
/// dtypes, optimizer and parameter groups must be the same. |out_number|, which
/// may be null, gets the number of the checkpoint. Collective, and only between
/// steps.
///
/// A checkpoint that was saved between two backward passes leads to where it
/// was saved: the next call begins a backward pass, applies or discards. Its
/// number of backward passes is that of zero_rt_step_backward_passes. On n
/// times as many ranks with batches of their own this is 1 / n of those that
/// were made, and an error if that is no whole number. Where callers divide
/// gradients by such numbers, the sums are scaled. If ranks have other sums of
/// their own than those that saved, addends are summed in f64 and rounded once.
///
/// Each rank checks what it reads. If anything is damaged, missing, left over
/// or different on any rank, all ranks return an error and no state has
/// changed. If a file changes during the call, the step may be poisoned. Since
/// version
/// 16. Errors: invalid_argument, mismatch (ranks read different checkpoints),
/// unsupported (the checkpoint has a later format), protocol.
zero_rt_status zero_rt_step_load(zero_rt_step *step, const char *folder,
                                 int64_t *out_number);
/// As load, and leaves out the gradients of a checkpoint that was saved within
/// a step: the step is at its begin, and the caller makes its backward passes
/// again. So any number of ranks can load it.
zero_rt_status zero_rt_step_load_begin(zero_rt_step *step, const char *folder,
                                       int64_t *out_number);

/// The number of the activation called |name|.
zero_rt_status zero_rt_step_find_activation(zero_rt_step *step,
                                            const char *name,
                                            int32_t *out_activation);
/// Sends to the peer of an activation. The source stage sends the activation,
/// and the destination stage sends its gradient. |micro_batch| is a number that
/// the caller chooses, at least 0; each micro-batch is sent once between two
/// calls of apply or discard. |shape| holds the extents; it may be null for a
/// gradient, and if all extents are declared. The call copies the tensor, and
/// waits for no other rank; on a GPU it waits for the work on |stream|, unless
/// GPUs exchange activations directly. If something is sent and not received,
/// all ranks refuse the step.
zero_rt_status zero_rt_step_send(zero_rt_step *step, int32_t activation,
                                 int64_t micro_batch,
                                 const zero_rt_tensor *tensor,
                                 const int64_t *shape, zero_rt_stream *stream);
/// The extents of the tensor that receive with the same arguments fills. Waits
/// for the extents that are not declared.
zero_rt_status zero_rt_step_receive_shape(zero_rt_step *step,
                                          int32_t activation,
                                          int64_t micro_batch,
                                          int64_t *out_shape);
/// Waits for the tensor that the peer of an activation sends, and writes it to
/// |tensor|; on a GPU, after the earlier and before the later work on |stream|.
/// Errors: timeout (the tensor did not arrive, or never will); the
/// call may be repeated.
zero_rt_status zero_rt_step_receive(zero_rt_step *step, int32_t activation,
                                    int64_t micro_batch,
                                    const zero_rt_tensor *tensor,
                                    zero_rt_stream *stream);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_STEP_H
