//===- Machine.cpp - How fast a machine moves bytes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Machine.h"

#include "tools/driver/Nesting.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

double Machine::getSeconds(int64_t span, int64_t among, int64_t messages,
                           int64_t bytes) const {
  if (span < 2)
    return 0;
  auto link = llvm::find_if(links, [&](const Link &l) {
    return l.ranks >= among || l.ranks % span == 0;
  });
  if (link == links.end())
    --link;
  return double(messages) * link->latency + double(bytes) / link->bandwidth;
}

namespace {
/// Reads the keys of one object, and remembers the first error.
class Fields {
public:
  Fields(const json::Object &object, std::string place, std::string &message)
      : object(object), place(std::move(place)), message(message) {}

  void number(StringRef key, double &value, bool mayBeZero = false) {
    known.push_back(key);
    const json::Value *field = object.get(key);
    std::optional<double> read = field ? field->getAsNumber() : std::nullopt;
    if (read && std::isfinite(*read) &&
        (*read > 0 || (mayBeZero && *read == 0)))
      value = *read;
    else
      fail("'" + key.str() + "' must be a positive number" +
           (mayBeZero ? " or 0" : "") + (field ? "" : ", and is missing"));
  }
  void count(StringRef key, int64_t &value) {
    known.push_back(key);
    const json::Value *field = object.get(key);
    std::optional<int64_t> read = field ? field->getAsInteger() : std::nullopt;
    value = read.value_or(1);
    if (value < 1 || !read)
      fail("'" + key.str() + "' must be a whole number of at least 1");
  }
  void text(StringRef key, std::string &value) {
    known.push_back(key);
    if (std::optional<StringRef> read = object.getString(key))
      value = read->str();
    else
      fail("'" + key.str() + "' must be a text");
  }
  const json::Array *list(StringRef key) {
    known.push_back(key);
    const json::Array *array = object.getArray(key);
    if (!array || array->empty())
      fail("'" + key.str() + "' must be a list that is not empty");
    return array;
  }
  /// A key that nobody reads is a mistake.
  bool finish() {
    for (const auto &entry : object)
      if (!llvm::is_contained(known, StringRef(entry.first)))
        fail("unknown key '" + entry.first.str() + "', expected " +
             llvm::join(known, ", "));
    return message.empty();
  }

private:
  void fail(const std::string &what) {
    if (message.empty())
      message = place + what;
  }

  const json::Object &object;
  std::string place;
  std::string &message;
  std::vector<StringRef> known;
};
} // namespace

llvm::LogicalResult zero::readMachine(StringRef text, StringRef file,
                                      Machine &machine, std::string &message) {
  std::string place = file.str() + ": ";
  if (isNestedDeeply(text)) {
    message = place + "is nested more than " + std::to_string(kDeepestText) +
              " levels deep";
    return llvm::failure();
  }
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    message = place + toString(parsed.takeError());
    return llvm::failure();
  }
  const json::Object *object = parsed->getAsObject();
  if (!object) {
    message = place + "expected an object";
    return llvm::failure();
  }
  Fields fields(*object, place, message);
  fields.text("name", machine.name);
  fields.count("device_bytes", machine.deviceBytes);
  fields.number("device_bandwidth", machine.deviceBandwidth);
  fields.number("host_bandwidth", machine.hostBandwidth);
  fields.number("copy_bandwidth", machine.copyBandwidth);
  if (const json::Array *links = fields.list("links"))
    for (const auto &[i, value] : llvm::enumerate(*links)) {
      std::string which = place + "link " + std::to_string(i) + ": ";
      const json::Object *entry = value.getAsObject();
      if (!entry) {
        message = message.empty() ? which + "expected an object" : message;
        break;
      }
      Link &link = machine.links.emplace_back();
      Fields of(*entry, which, message);
      of.count("ranks", link.ranks);
      of.number("latency", link.latency, /*mayBeZero=*/true);
      of.number("bandwidth", link.bandwidth);
      (void)of.finish();
      if (i > 0 && message.empty() && link.ranks <= machine.links[i - 1].ranks)
        message = which + "connects " + std::to_string(link.ranks) +
                  " ranks, expected more than the link before it";
    }
  return llvm::success(fields.finish());
}

json::Object Times::toJson() const {
  return json::Object{{"send_in_backward", sendInBackward},
                      {"send_at_apply", sendAtApply},
                      {"copy", copy},
                      {"device_kernels", deviceKernels},
                      {"host_kernels", hostKernels},
                      {"total", getTotal()}};
}

int64_t zero::getMessages(StringRef op, int64_t ranks) {
  return (op.starts_with("all_reduce") ? 2 : 1) * (ranks - 1);
}

/// The seconds of the collectives of |when|, one after the other; 0 if the plan
/// has none.
static double getSeconds(const json::Object &stage, StringRef when,
                         const Machine &machine) {
  double seconds = 0;
  const json::Array *collectives =
      stage.getObject("collectives_per_rank")->getArray(when);
  if (!collectives)
    return 0;
  for (const json::Value &value : *collectives) {
    const json::Object &one = *value.getAsObject();
    int64_t messages =
        getMessages(*one.getString("op"), *one.getInteger("ranks")) *
        *one.getInteger("count");
    seconds +=
        machine.getSeconds(*one.getInteger("span"), *one.getInteger("among"),
                           messages, *one.getInteger("bytes_sent"));
  }
  return seconds;
}

Times zero::getTimes(const json::Object &stage, const Machine &machine) {
  const json::Object &kernels =
      *stage.getObject("kernels_per_rank")->getObject("apply");
  const json::Object &traffic = *stage.getObject("traffic_per_rank");
  Times times;
  // Units are gathered in the forward pass, and again in the backward pass.
  for (StringRef when : {"first_backward", "unshard_all", "unshard_again"})
    times.sendInBackward += getSeconds(stage, when, machine);
  times.sendAtApply = getSeconds(stage, "apply", machine);
  for (StringRef when :
       {"first_backward", "unshard_all", "unshard_again", "apply"})
    if (const json::Object *counts = traffic.getObject(when))
      times.copy += double(*counts->getInteger("bytes_copied_between_spaces")) /
                    machine.copyBandwidth;
  times.deviceKernels =
      double(*kernels.getInteger("device_bytes")) / machine.deviceBandwidth;
  times.hostKernels =
      double(*kernels.getInteger("host_bytes")) / machine.hostBandwidth;
  return times;
}
