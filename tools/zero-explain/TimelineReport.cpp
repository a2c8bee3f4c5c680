//===- TimelineReport.cpp - A timeline as words, JSON and a page ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/TimelineReport.h"

#include "dialect/zero/CountOf.h"
#include "tools/plan/PlanTable.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

static const char kPage[] =
#include "Page.inc"
    ;

constexpr zrt::Space kSpaces[] = {zrt::Space::device, zrt::Space::host};

namespace {
struct StreamUse {
  zrt::Stream stream;
  int64_t calls = 0;
  double busy = 0;
};

/// What is alive of a memory space when most is.
struct Peak {
  int64_t bytes = 0;
  std::vector<std::pair<zrt::Role, int64_t>> byRole;
  std::vector<StringRef> largest; // buffers
};
} // namespace

/// The streams on which something takes time, the caller's first.
static std::vector<StreamUse> getStreams(const Timeline &timeline) {
  std::vector<StreamUse> uses;
  for (zrt::Stream stream :
       {zrt::Stream::caller, zrt::Stream::compute, zrt::Stream::collective,
        zrt::Stream::to_host, zrt::Stream::host, zrt::Stream::to_device}) {
    StreamUse use{stream};
    for (const TimedCall &call : timeline.calls)
      if (call.stream == stream) {
        ++use.calls;
        use.busy += call.span.finish - call.span.start;
      }
    if (use.calls > 0)
      uses.push_back(use);
  }
  return uses;
}

static Peak getPeak(const Timeline &timeline, zrt::Space space, Span span) {
  constexpr size_t kNamed = 3;
  std::vector<const TimedBuffer *> alive = findPeak(timeline, space, span);
  Peak peak;
  for (const TimedBuffer *buffer : alive) {
    peak.bytes += buffer->bytes;
    auto it = llvm::find_if(peak.byRole, [&](const auto &entry) {
      return entry.first == buffer->role;
    });
    if (it == peak.byRole.end())
      peak.byRole.push_back({buffer->role, buffer->bytes});
    else
      it->second += buffer->bytes;
  }
  llvm::sort(peak.byRole);
  llvm::sort(alive, [](const TimedBuffer *a, const TimedBuffer *b) {
    return std::pair(-a->bytes, a) < std::pair(-b->bytes, b);
  });
  for (const TimedBuffer *buffer : llvm::ArrayRef(alive).take_front(kNamed))
    peak.largest.push_back(buffer->name);
  return peak;
}

static json::Object describePeak(const Peak &peak) {
  json::Object byRole;
  for (auto [role, bytes] : peak.byRole)
    byRole[zrt::stringifyRole(role)] = bytes;
  json::Array largest;
  largest.reserve(peak.largest.size());
  for (StringRef name : peak.largest)
    largest.push_back(name.str());
  return json::Object{{"bytes", peak.bytes},
                      {"by_role", std::move(byRole)},
                      {"largest", std::move(largest)}};
}

/// The calls of |timeline|, those that are too short to see as one.
static json::Array describeCalls(const Timeline &timeline) {
  double shortest = timeline.finish / 100000;
  auto isShort = [&](const Span &span) {
    return span.finish - span.start < shortest;
  };
  std::vector<std::pair<TimedCall, int64_t>> merged;
  size_t last[kNumStreams] = {}; // by stream: the place behind its last one
  for (const TimedCall &call : timeline.calls) {
    size_t &place = last[size_t(call.stream)];
    if (place > 0) {
      auto &[before, count] = merged[place - 1];
      if (isShort(call.span) &&
          isShort({before.span.finish, call.span.start}) &&
          (count > 1 || isShort(before.span))) {
        before.span.finish = call.span.finish;
        before.bytes += call.bytes;
        ++count;
        continue;
      }
    }
    merged.push_back({call, 1});
    place = merged.size();
  }
  json::Array calls;
  calls.reserve(merged.size());
  for (auto &[call, count] : merged) {
    std::string what = count > 1 ? "and " + countOf(count - 1, "other") +
                                       " behind " + call.what
                                 : call.what;
    calls.push_back(json::Object{{"stream", zrt::stringifyStream(call.stream)},
                                 {"start", call.span.start},
                                 {"finish", call.span.finish},
                                 {"name", call.name},
                                 {"what", std::move(what)},
                                 {"bytes", call.bytes},
                                 {"after", call.after}});
  }
  return calls;
}

static json::Array describeBuffers(const Timeline &timeline) {
  json::Array buffers;
  buffers.reserve(timeline.buffers.size());
  for (const TimedBuffer &buffer : timeline.buffers) {
    json::Array alive;
    for (Span span : buffer.alive)
      alive.push_back(json::Array{span.start, span.finish});
    buffers.push_back(json::Object{{"name", buffer.name},
                                   {"role", zrt::stringifyRole(buffer.role)},
                                   {"space", zrt::stringifySpace(buffer.space)},
                                   {"bytes", buffer.bytes},
                                   {"alive", std::move(alive)}});
  }
  return buffers;
}

std::string zero::describeAssumptions(double backward) {
  std::string passes =
      backward > 0
          ? llvm::formatv("a backward pass takes {0:f3} ms and a forward pass "
                          "half of it; gradients arrive one by one",
                          1e3 * backward)
                .str()
          : "forward and backward pass take no time, and all gradients are "
            "there at once (--backward-ms says how long a backward pass takes)";
  return "an estimate for a step of one backward pass: " + passes +
         "; the host is ahead of the streams, which run side by side; a "
         "collective takes as long as a ring, "
         "and a kernel as long as its memory";
}

json::Object zero::describeTimeline(const Timeline &timeline, bool isWhole) {
  json::Array streams, phases;
  for (const StreamUse &use : getStreams(timeline))
    streams.push_back(json::Object{{"stream", zrt::stringifyStream(use.stream)},
                                   {"calls", use.calls},
                                   {"busy", use.busy}});
  phases.reserve(timeline.phases.size());
  for (const Phase &phase : timeline.phases) {
    json::Object alive;
    for (zrt::Space space : kSpaces)
      alive[zrt::stringifySpace(space)] =
          describePeak(getPeak(timeline, space, phase.span));
    phases.push_back(json::Object{{"name", phase.name},
                                  {"start", phase.span.start},
                                  {"finish", phase.span.finish},
                                  {"alive", std::move(alive)}});
  }
  json::Object held;
  for (zrt::Space space : kSpaces) {
    int64_t bytes = 0;
    for (const TimedBuffer &buffer : timeline.buffers)
      bytes += buffer.space == space ? buffer.bytes : 0;
    held[zrt::stringifySpace(space)] = bytes;
  }
  json::Object object{{"seconds", timeline.finish},
                      {"exposed", timeline.getExposed()},
                      {"streams", std::move(streams)},
                      {"phases", std::move(phases)},
                      {"held", std::move(held)}};
  if (isWhole) {
    object["calls"] = describeCalls(timeline);
    object["buffers"] = describeBuffers(timeline);
  }
  return object;
}

void zero::printTimeline(const Timeline &timeline, double backward,
                         llvm::raw_ostream &os) {
  os << "\nas scheduled\n";
  std::string text = describeAssumptions(backward);
  // In lines as long as those of the tables.
  for (StringRef rest = text; !rest.empty();) {
    constexpr size_t kWidth = 92;
    size_t end = rest.size() <= kWidth ? rest.size() : rest.rfind(' ', kWidth);
    os << "  " << rest.take_front(end) << "\n";
    rest = rest.drop_front(end).ltrim();
  }
  os << llvm::format("  step %15.3f ms, of which %.3f ms are exposed: forward "
                     "and backward do not hide them\n",
                     1e3 * timeline.finish, 1e3 * timeline.getExposed());
  os << "  stream           calls            busy\n";
  for (const StreamUse &use : getStreams(timeline))
    os << llvm::format("  %-12s %9lld %12.3f ms\n",
                       zrt::stringifyStream(use.stream).data(),
                       (long long)use.calls, 1e3 * use.busy);
  os << "\nalive at most         space            bytes   by role\n";
  for (const Phase &phase : timeline.phases)
    for (zrt::Space space : kSpaces) {
      Peak peak = getPeak(timeline, space, phase.span);
      if (peak.bytes == 0)
        continue;
      os << llvm::format("  %-19s %-6s %15s   ", phase.name,
                         zrt::stringifySpace(space).data(),
                         formatBytes(peak.bytes).c_str());
      llvm::interleave(
          peak.byRole, os,
          [&](const auto &entry) {
            os << zrt::stringifyRole(entry.first) << " "
               << formatBytes(entry.second);
          },
          ", ");
      os << "\n";
    }
}

std::string zero::makePage(json::Object answer) {
  std::string data;
  llvm::raw_string_ostream(data) << json::Value(std::move(answer));
  // A name in the step must not look like a tag or a comment of the page.
  constexpr llvm::StringLiteral kLess = "\\u003c";
  for (size_t i = 0; (i = data.find('<', i)) != std::string::npos;
       i += kLess.size())
    data.replace(i, 1, kLess);
  StringRef page = kPage, marker = ">ZERO_DATA<";
  auto [before, after] = page.split(marker);
  return (before + ">" + data + "<" + after).str();
}
