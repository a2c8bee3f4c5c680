//===- activation_calls.cpp - Activations: send and receive ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A source rank sends the activation, and a destination rank sends its
// gradient.
//
//===----------------------------------------------------------------------===//

#include "core/activations.h"

#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/stages.h"
#include "core/status.h"
#include "core/step.h"

#include <cstring>

using namespace zero_rt;

namespace {

/// One micro-batch of an activation, as a call sees it.
struct Subject {
  const zero_rt_activation_row *row = nullptr;
  bool isSource = false; // this rank sends the activation
  int32_t peer = 0;
  MessageName message;
  Passage *passage = nullptr;
  std::string name; // "activation 'hidden' of micro-batch 3"

  bool isDynamic() const {
    for (int64_t d = 0; d < row->num_dims; ++d)
      if (row->dims[d] < 0)
        return true;
    return false;
  }
  /// The activation, which the source sends, or its gradient, which comes back.
  std::string describe(bool isGradient) const {
    return (isGradient ? "gradient of " : "") + name;
  }
};

} // namespace

static zero_rt_status findSubject(Step &step, const char *call,
                                  int32_t activation, int64_t microBatch,
                                  Subject &subject) {
  // The number of messages is part of what was measured.
  ZERO_RT_TRY(requireNotMeasured(step, call));
  const zero_rt_library &library = *step.library;
  if (activation < 0 || activation >= library.num_activations)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "activation %d is out of range, step '%s' has %lld", activation,
                library.name, (long long)library.num_activations);
  if (microBatch < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s: micro_batch is %lld, expected at least 0", call,
                (long long)microBatch);
  const zero_rt_activation_row &row = library.activations[activation];
  int32_t rank = step.runtime->rank;
  int64_t mine = coordinateOf(library, rank, row.axis);
  if (mine != row.from && mine != row.to)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "activation '%s' goes from %s = %lld to %lld, and rank %d is "
                "at %lld",
                step.text(row.name), step.text(library.axes[row.axis].name),
                (long long)row.from, (long long)row.to, rank, (long long)mine);
  subject.row = &row;
  subject.isSource = mine == row.from;
  subject.peer =
      rankAt(library, rank, row.axis, subject.isSource ? row.to : row.from);
  subject.message.step = step.id;
  subject.message.window = step.activations.window;
  subject.message.activation = activation;
  subject.message.microBatch = microBatch;
  subject.name = "activation '" + std::string(step.text(row.name)) +
                 "' of micro-batch " + std::to_string(microBatch);
  subject.passage = &step.activations.passages[{activation, microBatch}];
  return ZERO_RT_OK;
}

static std::string toString(const int64_t *shape, int64_t dims) {
  std::string text = "[";
  for (int64_t d = 0; d < dims; ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

/// The number of elements of |shape|, or -1 if a rank could not hold them.
static int64_t countElements(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  bool isEmpty = false;
  for (int64_t extent : shape) {
    isEmpty |= extent == 0;
    if (extent > 0 && (__builtin_mul_overflow(elements, extent, &elements) ||
                       elements > int64_t(1) << 48))
      elements = INT64_MAX / 2; // stays too large
  }
  return isEmpty ? 0 : elements > int64_t(1) << 48 ? -1 : elements;
}

/// An activation of an integer type has no gradient.
static zero_rt_status checkDirection(const Subject &subject, const char *call,
                                     bool isGradient) {
  if (!isGradient || isDtype(subject.row->dtype))
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT, "%s: %s, which is of %s and has none",
              call, subject.describe(true).c_str(),
              dtypeName(subject.row->dtype));
}

/// Completes the shape of |subject| from |shape|, which may be null if all
/// extents are declared.
static zero_rt_status checkShape(const Subject &subject, const int64_t *shape,
                                 std::vector<int64_t> &out) {
  const zero_rt_activation_row &row = *subject.row;
  out.assign(row.dims, row.dims + row.num_dims);
  if (!shape) {
    for (int64_t d = 0; d < row.num_dims; ++d)
      if (row.dims[d] < 0)
        return fail(ZERO_RT_INVALID_ARGUMENT,
                    "send: extent %lld of %s is declared '?'; pass its shape",
                    (long long)d, subject.name.c_str());
    return ZERO_RT_OK;
  }
  for (int64_t d = 0; d < row.num_dims; ++d) {
    if (shape[d] < 0 || (row.dims[d] >= 0 && shape[d] != row.dims[d]))
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "send: extent %lld of %s is %lld, expected %s", (long long)d,
                  subject.name.c_str(), (long long)shape[d],
                  row.dims[d] < 0 ? "at least 0"
                                  : std::to_string(row.dims[d]).c_str());
    out[size_t(d)] = shape[d];
  }
  if (countElements(out) < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT, "send: %s is too large: %s",
                subject.name.c_str(), toString(shape, row.num_dims).c_str());
  return ZERO_RT_OK;
}

/// Sends a copy of |payload|, over a lane or over the hosts.
static zero_rt_status sendTensor(Step &step, int32_t to,
                                 const MessageName &name,
                                 const Payload &payload) {
  if (step.lanes.areOpen())
    return step.lanes.send(to, name, payload);
  Outgoing *packed = nullptr;
  ZERO_RT_TRY(packTensor(step, payload, packed));
  return step.runtime->messenger->send(to, name, packed->message);
}

zero_rt_status calls::send(Step *step, int32_t activation, int64_t micro_batch,
                           const zero_rt_tensor *tensor, const int64_t *shape,
                           zero_rt_stream *stream) {
  Subject subject;
  ZERO_RT_TRY(findSubject(*step, "send", activation, micro_batch, subject));
  Passage &passage = *subject.passage;
  bool isGradient = !subject.isSource;
  std::string what = subject.describe(isGradient);
  ZERO_RT_TRY(checkDirection(subject, "send", isGradient));
  if (isGradient && !passage.isReceived)
    return fail(ZERO_RT_PROTOCOL,
                "send: %s, which rank %d has not received since the last apply",
                what.c_str(), step->runtime->rank);
  if (passage.isSent)
    return fail(ZERO_RT_PROTOCOL,
                "send: %s was sent since the last apply; each goes once, so "
                "number those of an evaluation on",
                what.c_str());
  std::vector<int64_t> extents;
  if (isGradient && !shape)
    extents = passage.shape;
  else
    ZERO_RT_TRY(checkShape(subject, shape, extents));
  if (isGradient && extents != passage.shape)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "send: %s has extents %s, and the activation has %s",
                what.c_str(), toString(shape, subject.row->num_dims).c_str(),
                toString(passage.shape.data(), subject.row->num_dims).c_str());
  int64_t elements = countElements(extents);
  zero_rt_tensor given;
  ZERO_RT_TRY(readTensor(
      tensor, isGradient ? "gradient of activation" : "activation",
      step->text(subject.row->name), subject.row->dtype, elements, given));

  Outgoing *header = nullptr;
  Payload payload = {given.data, elements * elementSize(subject.row->dtype),
                     stream, step->text(subject.row->name),
                     given.space == ZERO_RT_SPACE_HOST};
  if (subject.isSource && subject.isDynamic())
    ZERO_RT_TRY(packExtents(*step, extents, payload.activation, header));
  MessageName message = subject.message;
  message.isGradient = isGradient;
  if (zero_rt_status status =
          sendTensor(*step, subject.peer, message, payload)) {
    if (header)
      header->message.isTaken = true; // a header is not sent alone
    return status;
  }
  zero_rt_counters &counters = step->runtime->counters;
  if (header) {
    message.isHeader = true;
    ZERO_RT_TRY(
        step->runtime->messenger->send(subject.peer, message, header->message));
    ++counters.activation_headers_sent;
  }
  ++counters.activations_sent;
  counters.activation_bytes_sent += payload.bytes;
  passage.isSent = true;
  passage.shape = std::move(extents);
  return ZERO_RT_OK;
}

/// Checks that |subject| may be received, and waits for its extents.
static zero_rt_status awaitShape(Step &step, const char *call,
                                 const Subject &subject) {
  Passage &passage = *subject.passage;
  std::string what = subject.describe(subject.isSource);
  ZERO_RT_TRY(checkDirection(subject, call, subject.isSource));
  if (subject.isSource && !passage.isSent)
    return fail(ZERO_RT_PROTOCOL,
                "%s: %s, which rank %d has not sent since the last apply", call,
                what.c_str(), step.runtime->rank);
  if (passage.isReceived)
    return fail(ZERO_RT_PROTOCOL, "%s: %s was received since the last apply",
                call, what.c_str());
  if (subject.isSource || !passage.shape.empty())
    return ZERO_RT_OK;
  const zero_rt_activation_row &row = *subject.row;
  std::vector<int64_t> extents(row.dims, row.dims + row.num_dims);
  if (subject.isDynamic()) {
    MessageName name = subject.message;
    name.isHeader = true;
    ZERO_RT_TRY(step.runtime->messenger->receive(
        subject.peer, name, extents.data(),
        int64_t(extents.size() * sizeof(int64_t)), what.c_str()));
  }
  passage.shape = std::move(extents);
  return ZERO_RT_OK;
}

zero_rt_status calls::receive_shape(Step *step, int32_t activation,
                                    int64_t micro_batch, int64_t *out_shape) {
  Subject subject;
  ZERO_RT_TRY(
      findSubject(*step, "receive_shape", activation, micro_batch, subject));
  if (!out_shape && subject.row->num_dims)
    return fail(ZERO_RT_INVALID_ARGUMENT, "receive_shape: out_shape is null");
  ZERO_RT_TRY(awaitShape(*step, "receive_shape", subject));
  for (int64_t d = 0; d < subject.row->num_dims; ++d)
    out_shape[d] = subject.passage->shape[size_t(d)];
  return ZERO_RT_OK;
}

zero_rt_status calls::receive(Step *step, int32_t activation,
                              int64_t micro_batch, const zero_rt_tensor *tensor,
                              zero_rt_stream *stream) {
  Subject subject;
  ZERO_RT_TRY(findSubject(*step, "receive", activation, micro_batch, subject));
  ZERO_RT_TRY(awaitShape(*step, "receive", subject));
  int64_t elements = countElements(subject.passage->shape);
  bool isGradient = subject.isSource;
  zero_rt_tensor given;
  ZERO_RT_TRY(readTensor(
      tensor, isGradient ? "gradient of activation" : "activation",
      step->text(subject.row->name), subject.row->dtype, elements, given));
  MessageName name = subject.message;
  name.isGradient = isGradient;
  Payload payload = {given.data, elements * elementSize(subject.row->dtype),
                     stream, step->text(subject.row->name),
                     given.space == ZERO_RT_SPACE_HOST};
  std::string what = subject.describe(isGradient);
  ZERO_RT_TRY(
      step->lanes.areOpen()
          ? step->lanes.receive(subject.peer, name, payload, what)
          : receiveTensor(*step, payload, [&](void *data, int64_t bytes) {
              return step->runtime->messenger->receive(subject.peer, name, data,
                                                       bytes, what.c_str());
            }));
  subject.passage->isReceived = true;
  return ZERO_RT_OK;
}

zero_rt_status calls::find_activation(Step *step, const char *name,
                                      int32_t *out_activation) {
  if (!name || !out_activation)
    return fail(ZERO_RT_INVALID_ARGUMENT, "find_activation: %s is null",
                name ? "out_activation" : "name");
  const zero_rt_library &library = *step->library;
  std::string known;
  for (int64_t a = 0; a < library.num_activations; ++a) {
    const char *other = step->text(library.activations[a].name);
    if (std::strcmp(name, other) == 0) {
      *out_activation = int32_t(a);
      return ZERO_RT_OK;
    }
    known += (a ? ", '" : "'") + std::string(other) + "'";
  }
  *out_activation = -1;
  return fail(ZERO_RT_INVALID_ARGUMENT, "no activation '%s': '%s' has %s", name,
              library.name, known.empty() ? "none" : known.c_str());
}

int64_t zero_rt::countSentLessReceived(const Step &step) {
  int64_t count = 0;
  for (const auto &[key, passage] : step.activations.passages)
    count += int64_t(passage.isSent) - int64_t(passage.isReceived);
  return count;
}

std::string zero_rt::describe(const Step &step, const MessageName &name,
                              int32_t from) {
  // Another process gave the number.
  bool isKnown =
      name.activation >= 0 && name.activation < step.library->num_activations;
  const char *text =
      isKnown ? step.text(step.library->activations[name.activation].name)
              : "unknown";
  return std::string(name.isGradient ? "gradient of " : "") + "activation '" +
         text + "' of micro-batch " + std::to_string(name.microBatch) +
         " from rank " + std::to_string(from);
}

bool zero_rt::findUnread(Step &step, bool waits, MessageName &name,
                         int32_t &from) {
  int64_t window = step.activations.window;
  return step.lanes.findUnread(window, waits, name, from) ||
         step.runtime->messenger->findUnread(step.id, window, waits, name,
                                             from);
}

void zero_rt::endWindow(Step &step) {
  ActivationState &state = step.activations;
  step.lanes.dropUnread(state.window);
  step.runtime->messenger->dropUnread(step.id, state.window++);
  state.passages.clear();
}
