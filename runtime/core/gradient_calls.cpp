//===- gradient_calls.cpp - Gradients: arrive, pack, fill -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gradient arrives as a tensor that `pack` writes to its segment, or a
// producer writes the segment itself through a gradient view and then calls
// gradient_ready. Both run the same handlers. In the second case the event has
// no tensor, and `pack` writes only the pad.
//
//===----------------------------------------------------------------------===//

#include "core/gradients.h"

#include "core/calls.h"
#include "core/numeric.h"
#include "core/preconditions.h"
#include "core/protocol.h"
#include "core/structs.h"
#include "core/units.h"

#include <algorithm>
#include <vector>

using namespace zero_rt;

using Slot = Window::Slot;

/// Checks that one more gradient of |parameter| may arrive now, after |earlier|
/// ones of the same call.
static zero_rt_status checkArrival(const Step &step, int32_t parameter,
                                   const char *call,
                                   const zero_rt_transition_row **out,
                                   int64_t earlier = 0) {
  ZERO_RT_TRY(findTransition(step, ZERO_RT_EVENT_ARRIVE, call, out));
  ZERO_RT_TRY(checkNotEnded(step, call));
  ZERO_RT_TRY(checkNotResharded(step, parameter));
  return checkUses(step, parameter,
                   step.window.arrivals(parameter) +
                       step.sequence.waitingOf[size_t(parameter)] + earlier);
}

zero_rt_status zero_rt::checkUses(const Step &step, int32_t parameter,
                                  int64_t arrivals) {
  int64_t uses = step.library->parameters[parameter].uses;
  if (arrivals < uses || uses == ZERO_RT_USES_ANY)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "gradient of '%s' arrived %lld times in this backward pass, "
              "declared %lld",
              step.parameterName(parameter), (long long)arrivals + 1,
              (long long)uses);
}

/// The timepoint at which a tensor is given back. Tensors of one batch share
/// it.
static zero_rt_timepoint takeRelease(Step &step) {
  ArrivalBatch &batch = step.batch;
  if (batch.isOpen && batch.timepoint)
    return batch.timepoint;
  zero_rt_timepoint taken = ++step.runtime->timepoints;
  if (batch.isOpen)
    batch.timepoint = taken;
  return taken;
}

/// |tensor| is null for a gradient view.
static zero_rt_status arrive(Step &step, int32_t parameter,
                             const zero_rt_tensor *tensor, const char *call,
                             const zero_rt_transition_row &row,
                             zero_rt_stream *stream,
                             zero_rt_timepoint *outRelease = nullptr) {
  CallerStream caller{CallerStream::Delivery::Now, stream};
  caller.isLent = tensor != nullptr;
  if (outRelease && !step.device().isImmediate())
    caller.release = takeRelease(step);
  ZERO_RT_TRY(runTransition(
      step, row, {ZERO_RT_EVENT_ARRIVE, parameter, tensor}, call, caller));
  step.window.arrive(parameter);
  if (outRelease)
    *outRelease = caller.release;
  return advanceSequence(step, row, parameter, call);
}

zero_rt_status zero_rt::makeWaiting(Step &step, int32_t parameter,
                                    const zero_rt_tensor &tensor,
                                    zero_rt_stream *stream,
                                    zero_rt_timepoint *outRelease,
                                    WaitingGradient &out) {
  out.parameter = parameter;
  out.tensor = tensor;
  if (outRelease) {
    if (step.runtime->checkPreconditions) {
      ZERO_RT_TRY(step.device().follow(stream));
      ZERO_RT_TRY(digestOf(step, tensor, &out.digest));
    }
    if (zero_rt_status status = step.device().record(stream, &out.delivered)) {
      step.device().dropSignal(out.delivered);
      return status;
    }
    *outRelease = out.release = ++step.runtime->timepoints;
    step.runtime->unreleased.insert(out.release);
    return ZERO_RT_OK;
  }
  // The copy is the runtime's, so the schedule does not have it.
  ZERO_RT_TRY(step.device().follow(stream));
  int64_t bytes = tensor.elements * elementSize(tensor.dtype);
  ZERO_RT_TRY(
      step.runtime->memory.allocate(tensor.space, ZERO_RT_ROLE_STAGING, bytes,
                                    step.parameterName(parameter), out.copy));
  out.tensor.data = out.copy.data;
  zero_rt_status status = step.device().copy(out.copy.data, tensor.data, bytes);
  if (!status)
    status = step.device().precede(stream);
  if (status)
    step.runtime->memory.release(out.copy);
  return status;
}

zero_rt_status zero_rt::checkGradient(const Step &step, int32_t parameter,
                                      const zero_rt_tensor &tensor) {
  const zero_rt_parameter_row &row = step.library->parameters[parameter];
  const char *name = step.text(row.name);
  ZERO_RT_TRY(checkTensor(tensor, "gradient of", name, row.gradient_dtype,
                          row.elements));
  // A kernel reads the tensor in place, so the tensor must be in the space of
  // kernels.
  if (tensor.space != ZERO_RT_SPACE_DEVICE)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "gradient of '%s' is in space '%s', expected 'device'", name,
                spaceName(tensor.space));
  return ZERO_RT_OK;
}

/// Checks that |tensor| may be delivered now, after |earlier| pieces of the
/// gradient that the same call delivers.
static zero_rt_status checkDelivery(const Step &step, int32_t parameter,
                                    const zero_rt_tensor &tensor,
                                    const char *call,
                                    const zero_rt_transition_row **out,
                                    int64_t earlier = 0) {
  ZERO_RT_TRY(checkGradient(step, parameter, tensor));
  ZERO_RT_TRY(checkArrival(step, parameter, call, out, earlier));
  if (step.window.slot(parameter) == Slot::None)
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "%s of '%s' while its gradient view is handed out; call "
              "gradient_ready first",
              call, step.parameterName(parameter));
}

static zero_rt_status deliver(Step &step, int32_t parameter,
                              const zero_rt_tensor &tensor,
                              const zero_rt_transition_row &transition,
                              zero_rt_stream *stream,
                              zero_rt_timepoint *outRelease) {
  int64_t bucket = step.library->parameters[parameter].bucket;
  if (!isBucketOpen(step, transition, bucket)) {
    WaitingGradient waiting;
    ZERO_RT_TRY(
        makeWaiting(step, parameter, tensor, stream, outRelease, waiting));
    waitForBucket(step, waiting);
    return ZERO_RT_OK;
  }
  return arrive(step, parameter, &tensor, "gradient", transition, stream,
                outRelease);
}

zero_rt_status calls::gradient(Step *step, int32_t parameter,
                               const zero_rt_tensor *tensor,
                               zero_rt_stream *stream,
                               zero_rt_timepoint *out_release) {
  if (out_release)
    *out_release = 0; // also where the call fails
  ZERO_RT_TRY(checkParameter(*step, parameter));
  zero_rt_tensor given;
  ZERO_RT_TRY(readStruct(tensor, "tensor", given));
  const zero_rt_transition_row *transition;
  ZERO_RT_TRY(checkDelivery(*step, parameter, given, "gradient", &transition));
  return deliver(*step, parameter, given, *transition, stream, out_release);
}

zero_rt_status calls::gradients(Step *step, const int32_t *parameters,
                                const zero_rt_tensor *tensors, int64_t count,
                                zero_rt_stream *stream,
                                zero_rt_timepoint *out_releases) {
  if (count < 0 || (count > 0 && !(parameters && tensors)))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                count < 0 ? "gradients: count is %lld"
                          : "gradients: a list of %lld is null",
                (long long)count);
  if (out_releases)
    std::fill_n(out_releases, count, zero_rt_timepoint(0));
  const zero_rt_transition_row *transition = nullptr;
  std::vector<int64_t> pieces(size_t(step->library->num_parameters));
  zero_rt_tensor given;
  for (int64_t i = 0; i < count; ++i) {
    ZERO_RT_TRY(checkParameter(*step, parameters[i]));
    ZERO_RT_TRY(readElement(tensors, i, "tensors", given));
    ZERO_RT_TRY(checkDelivery(*step, parameters[i], given, "gradients",
                              &transition, pieces[size_t(parameters[i])]++));
  }
  BatchScope batch(*step, "gradients");
  zero_rt_status status = ZERO_RT_OK;
  for (int64_t i = 0; i < count && !status; ++i) {
    status =
        findTransition(*step, ZERO_RT_EVENT_ARRIVE, "gradients", &transition);
    status = status ? status : readElement(tensors, i, "tensors", given);
    status = status ? status
                    : deliver(*step, parameters[i], given, *transition, stream,
                              out_releases ? &out_releases[i] : nullptr);
  }
  return batch.end(status);
}

static WaitingGradient *findHandedOut(Step &step, int32_t parameter) {
  for (WaitingGradient &slot : step.sequence.handedOut)
    if (slot.parameter == parameter)
      return &slot;
  return nullptr;
}

/// Hands out a gradient view in memory of its own, for a bucket that is not
/// open yet.
static zero_rt_status handOut(Step &step, int32_t parameter,
                              zero_rt_tensor *outSlot, double *outBeta) {
  const zero_rt_parameter_row &row = step.library->parameters[parameter];
  WaitingGradient *slot = findHandedOut(step, parameter);
  if (!slot) {
    WaitingGradient fresh;
    fresh.parameter = parameter;
    ZERO_RT_TRY(step.runtime->memory.allocate(
        ZERO_RT_SPACE_DEVICE, ZERO_RT_ROLE_STAGING,
        row.elements * elementSize(row.gradient_dtype), step.text(row.name),
        fresh.copy));
    fresh.tensor = makeTensor(row.gradient_dtype, ZERO_RT_SPACE_DEVICE,
                              row.elements, fresh.copy.data);
    step.sequence.handedOut.push_back(fresh);
    if (step.runtime->poison)
      ZERO_RT_TRY(
          step.poison(row.gradient_dtype, fresh.copy.data, row.elements));
    slot = &step.sequence.handedOut.back();
  }
  step.window.setSlot(parameter, Slot::Overwrite);
  writeStruct(slot->tensor, outSlot);
  *outBeta = 0;
  return ZERO_RT_OK;
}

/// Lets later work on |stream| write to the gradient view of |parameter|.
static zero_rt_status lendTo(Step &step, int32_t parameter,
                             zero_rt_stream *stream) {
  step.sequence.writers[parameter] = stream;
  return step.device().precede(stream);
}

zero_rt_status calls::gradient_slot(Step *step, int32_t parameter,
                                    zero_rt_stream *stream,
                                    zero_rt_tensor *out_slot,
                                    double *out_beta) {
  ZERO_RT_TRY(checkParameter(*step, parameter));
  ZERO_RT_TRY(checkStruct(out_slot, "out_slot"));
  if (!out_beta)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_beta is null");
  const zero_rt_transition_row *transition;
  ZERO_RT_TRY(checkArrival(*step, parameter, "gradient_slot", &transition));

  const zero_rt_parameter_row &row = step->library->parameters[parameter];
  int64_t buffer = step->library->buckets[row.bucket].gradient_buffer;
  const zero_rt_buffer_row &bufferRow = step->library->buffers[buffer];
  if (row.gradient_dtype != bufferRow.dtype)
    return fail(ZERO_RT_UNSUPPORTED,
                "gradient of '%s' has no gradient view: it arrives as %s and "
                "is kept as "
                "%s; call gradient instead",
                step->text(row.name), dtypeName(row.gradient_dtype),
                dtypeName(bufferRow.dtype));
  ZERO_RT_TRY(checkBuffer(*step, "gradient_slot", int32_t(buffer)));

  // A gradient view keeps its place, although its bucket may have opened since.
  if (findHandedOut(*step, parameter) ||
      !isBucketOpen(*step, *transition, row.bucket)) {
    ZERO_RT_TRY(handOut(*step, parameter, out_slot, out_beta));
    return lendTo(*step, parameter, stream);
  }

  // The contents count if they arrived in this backward pass, or if the buffer
  // is an accumulator and a backward pass was closed before.
  ZERO_RT_TRY(step->waitWritable(row.bucket));
  const Block &block = step->buffers[size_t(buffer)];
  bool add = step->window.arrivals(parameter) > 0 ||
             (step->window.closedBackwards() > 0 &&
              block.role == ZERO_RT_ROLE_ACCUMULATOR);
  step->window.setSlot(parameter, add ? Slot::Add : Slot::Overwrite);
  writeStruct(makeTensor(bufferRow.dtype, bufferRow.space, row.elements,
                         step->address(buffer, row.offset)),
              out_slot);
  *out_beta = add ? 1 : 0;
  return lendTo(*step, parameter, stream);
}

zero_rt_status calls::gradient_ready(Step *step, int32_t parameter,
                                     zero_rt_stream *stream) {
  ZERO_RT_TRY(checkParameter(*step, parameter));
  const zero_rt_transition_row *transition;
  ZERO_RT_TRY(checkArrival(*step, parameter, "gradient_ready", &transition));
  if (step->window.slot(parameter) == Slot::None)
    return fail(
        ZERO_RT_PROTOCOL,
        "gradient_ready of '%s' without a gradient view; call gradient_slot "
        "first",
        step->parameterName(parameter));
  WaitingGradient *found = findHandedOut(*step, parameter);
  if (found)
    ZERO_RT_TRY(step->device().record(stream, &found->delivered));
  step->sequence.writers.erase(parameter);
  if (!found) {
    ZERO_RT_TRY(arrive(*step, parameter, nullptr, "gradient_ready", *transition,
                       stream));
    step->window.setSlot(parameter, Slot::None);
    return ZERO_RT_OK;
  }
  WaitingGradient gradient = *found;
  step->sequence.handedOut.erase(step->sequence.handedOut.begin() +
                                 (found - step->sequence.handedOut.data()));
  step->window.setSlot(parameter, Slot::None);
  waitForBucket(*step, gradient);
  // The bucket may have been opened since the gradient view was handed out.
  const zero_rt_parameter_row &row = step->library->parameters[parameter];
  if (!isBucketOpen(*step, *transition, row.bucket))
    return ZERO_RT_OK;
  return packAndAdvance(*step, *transition, row.bucket, "gradient_ready");
}

//===----------------------------------------------------------------------===//
// Calls of handlers
//===----------------------------------------------------------------------===//

/// Zeroes [begin, end) of the gradient buffer of a bucket.
static zero_rt_status zeroGradient(Step &step, int64_t buffer, Range range) {
  int64_t size = elementSize(step.library->buffers[buffer].dtype);
  return step.device().set(step.address(buffer, range.begin), 0, size,
                           range.size());
}

static zero_rt_status runPack(Step &step, const zero_rt_parameter_row &row,
                              const zero_rt_tensor &tensor, bool add) {
  const zero_rt_bucket_row &bucket = step.library->buckets[row.bucket];
  void *operands[] = {tensor.data,
                      step.address(bucket.gradient_buffer, row.offset)};
  int64_t kernel = add ? bucket.add_kernel : bucket.store_kernel;
  ZERO_RT_TRY(step.launch({int32_t(kernel), operands, 2, /*table=*/-1,
                           Range{0, row.elements}, /*sumSlot=*/-1,
                           /*isOnHost=*/false}));
  if (step.library->buffers[bucket.gradient_buffer].space != tensor.space)
    step.runtime->counters.bytes_copied_between_spaces +=
        row.elements * elementSize(tensor.dtype);
  return ZERO_RT_OK;
}

zero_rt_status calls::pack(Step *step, const zero_rt_event *event,
                           int32_t accumulate) {
  if (!event || event->event != ZERO_RT_EVENT_ARRIVE)
    return fail(ZERO_RT_INTERNAL, "pack: not in an arrive handler");
  ZERO_RT_TRY(checkParameter(*step, event->parameter));
  const zero_rt_parameter_row &row =
      step->library->parameters[event->parameter];
  int64_t buffer = step->library->buckets[row.bucket].gradient_buffer;
  ZERO_RT_TRY(checkBuffer(*step, "pack", int32_t(buffer)));

  // A second use within one backward pass adds to the first.
  bool isSecond = step->window.arrivals(event->parameter) > 0;
  bool add = accumulate || isSecond;
  if (isSecond) // the first may be held back, and has the same memory
    ZERO_RT_TRY(settleBatch(*step));
  if (event->tensor) {
    ZERO_RT_TRY(runPack(*step, row, *event->tensor, add));
  } else if (step->window.slot(event->parameter) !=
             (add ? Slot::Add : Slot::Overwrite)) {
    // The caller has another beta than this handler assumes.
    return fail(
        ZERO_RT_INTERNAL,
        "pack: the gradient view of '%s' was handed out to %s, and the handler "
        "%s",
        step->text(row.name), add ? "overwrite" : "add",
        add ? "adds" : "overwrites");
  }
  if (!add)
    ZERO_RT_TRY(zeroGradient(
        *step, buffer, {row.offset + row.elements, row.offset + row.extent}));
  // Values written in place include the values that they were added to.
  const void *data =
      event->tensor ? event->tensor->data : step->address(buffer, row.offset);
  int64_t dtype = event->tensor ? event->tensor->dtype
                                : step->library->buffers[buffer].dtype;
  int64_t bytes = row.elements * elementSize(dtype);
  ZERO_RT_TRY(noteGradient(*step, event->parameter, data, bytes));
  if (!step->runtime->findNonfinite)
    return ZERO_RT_OK;
  ZERO_RT_TRY(step->device().look(data, bytes, &data));
  step->nonfinite.look({event->parameter, int32_t(step->window.backwards())},
                       data, row.elements, dtype);
  return ZERO_RT_OK;
}

zero_rt_status calls::fill_missing(Step *step, int32_t bucket) {
  const zero_rt_library &library = *step->library;
  if (bucket < 0 || bucket >= library.num_buckets)
    return fail(ZERO_RT_INTERNAL, "fill_missing: bucket %d is out of range",
                bucket);
  int64_t buffer = library.buckets[bucket].gradient_buffer;
  ZERO_RT_TRY(checkBuffer(*step, "fill_missing", int32_t(buffer)));
  for (int32_t p : step->index.parametersOf(bucket)) {
    if (step->window.arrivals(p) > 0)
      continue;
    const zero_rt_parameter_row &row = library.parameters[p];
    ZERO_RT_TRY(
        zeroGradient(*step, buffer, {row.offset, row.offset + row.extent}));
  }
  return ZERO_RT_OK;
}
