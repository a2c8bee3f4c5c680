//===- ScheduleMutations.cpp - Records and waits that go wrong ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "dialect/zrt/ZrtDialect.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;
using zrt::Stream;

static constexpr unsigned kNumStreams = zrt::getMaxEnumValForStream() + 1;

namespace {
class Collector {
public:
  Collector(ModuleOp module, std::vector<Mutation> &mutations)
      : ops(getOps(module)), mutations(mutations) {
    for (Operation *op : ops)
      if (auto event = dyn_cast<zrt::EventOp>(op))
        events.push_back(event.getSymNameAttr());
  }

  void run();

private:
  void add(unsigned index, StringRef what,
           std::function<void(Operation *)> change) {
    std::string kind = ops[index]->getName().getStringRef().str();
    mutations.push_back(
        {kind + ": " + what.str(), index,
         [index, change](const Ops &ops) { change(ops[index]); }});
  }
  /// |op| on each other stream.
  void addStreams(unsigned index, Stream now);
  /// Each event near the one that |op| names, in order of declaration.
  void addEvents(unsigned index, FlatSymbolRefAttr now);
  /// Calls that change places with the next one, if both are schedule or work
  /// of different streams.
  void addMove(unsigned index);
  void addLists(unsigned index, zrt::BucketTableOp table);

  Ops ops;
  std::vector<Mutation> &mutations;
  std::vector<StringAttr> events;
};
} // namespace

void Collector::addStreams(unsigned index, Stream now) {
  for (unsigned s = 0; s < kNumStreams; ++s)
    if (auto stream = static_cast<Stream>(s); stream != now)
      add(index, "another stream", [stream](Operation *op) {
        op->setAttr("stream", zrt::StreamAttr::get(op->getContext(), stream));
      });
}

void Collector::addEvents(unsigned index, FlatSymbolRefAttr now) {
  auto it = llvm::find(events, now.getAttr());
  for (int by : {-2, -1, 1, 2}) {
    ptrdiff_t other = it - events.begin() + by;
    if (other < 0 || other >= static_cast<ptrdiff_t>(events.size()))
      continue;
    add(index, "another event", [name = events[other]](Operation *op) {
      op->setAttr("event", FlatSymbolRefAttr::get(name));
    });
  }
}

void Collector::addMove(unsigned index) {
  Operation *op = ops[index];
  for (unsigned by : {1, 2, 4}) {
    Operation *to = op;
    for (unsigned i = 0; i < by && to; ++i)
      to = to->getNextNode();
    if (to)
      add(index, "later", [by](Operation *op) {
        Operation *to = op;
        for (unsigned i = 0; i < by; ++i)
          to = to->getNextNode();
        op->moveAfter(to);
      });
  }
  if (op->getPrevNode())
    add(index, "earlier",
        [](Operation *op) { op->moveBefore(op->getPrevNode()); });
}

void Collector::addLists(unsigned index, zrt::BucketTableOp table) {
  auto shorten = [&](StringRef name, ArrayAttr list) {
    if (!list)
      return;
    for (size_t i = 0; i < list.size(); ++i)
      add(index, (name + " without an event").str(),
          [i, name = name.str()](Operation *op) {
            auto list = op->getAttrOfType<ArrayAttr>(name);
            SmallVector<Attribute> left(list.begin(), list.end());
            left.erase(left.begin() + i);
            op->setAttr(name, ArrayAttr::get(op->getContext(), left));
          });
    add(index, (name + " cleared").str(),
        [name = name.str()](Operation *op) { op->removeAttr(name); });
  };
  shorten("writable", table.getWritableAttr());
  shorten("readable", table.getReadableAttr());
}

void Collector::run() {
  for (auto [position, op] : llvm::enumerate(ops)) {
    unsigned index = position;
    if (auto event = dyn_cast<zrt::EventOp>(op)) {
      addStreams(index, event.getStream());
    } else if (auto table = dyn_cast<zrt::BucketTableOp>(op)) {
      addLists(index, table);
    } else if (isa<zrt::RecordOp, zrt::WaitOp, zrt::WaitWritableOp>(op)) {
      add(index, "lost", [](Operation *op) { op->erase(); });
      addMove(index);
      if (auto wait = dyn_cast<zrt::WaitOp>(op)) {
        addStreams(index, wait.getStream());
        addEvents(index, wait.getEventAttr());
      } else if (auto record = dyn_cast<zrt::RecordOp>(op)) {
        addEvents(index, record.getEventAttr());
      }
    } else if (auto call = dyn_cast<zrt::RuntimeCall>(op)) {
      if (op->getPropertiesStorage() && op->getInherentAttr("stream"))
        addStreams(index, call.getStream());
    }
  }
}

void test::addScheduleMutations(ModuleOp module,
                                std::vector<Mutation> &mutations) {
  Collector(module, mutations).run();
}
