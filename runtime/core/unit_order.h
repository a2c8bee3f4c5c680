//===- unit_order.h - Which unit the caller uses next -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_UNIT_ORDER_H
#define ZERO_RT_CORE_UNIT_ORDER_H

#include "core/units.h"

namespace zero_rt {

/// Where the caller is in the orders of units that its step declares, without
/// the units of other pipeline stages. Where a
/// backward pass ends early, its order and the next forward pass may go on with
/// one unit, so there may be several places until another unit follows.
class UnitOrder {
public:
  explicit UnitOrder(const zero_rt_library &library);
  /// The caller unshards |unit|. Errors: protocol (another unit follows).
  zero_rt_status advance(const Step &step, int64_t unit);
  /// The caller reshards |unit|. A unit that it has kept from the forward pass
  /// is then used in the backward pass, without a call of advance.
  void noteReshard(const Step &step, int64_t unit);
  /// The units to gather ahead, first the one that follows.
  std::vector<int64_t> listAhead(const Step &step) const;
  /// Any order may begin.
  void reset() { places.clear(); }

private:
  struct Order {
    std::vector<int64_t> units;
    size_t prefetch;
  };
  struct Place {
    size_t order;
    size_t position; // behind the last unit
    /// The order began in a backward pass, which may end without a call.
    bool isOfBackward;
  };

  bool isAt(size_t order, size_t position, int64_t unit) const;
  size_t skip(const Step &step, size_t order, size_t from) const;
  bool isAtEnd(const Step &step, const Place &place) const;
  bool mayBegin(const Step &step, size_t order) const;
  static void add(std::vector<Place> &places, const Place &place);
  std::vector<int64_t> listNext(const Step &step, const Place &place,
                                size_t count) const;
  zero_rt_status refuse(const Step &step, int64_t unit) const;

  std::vector<Order> orders;
  std::vector<Place> places; // that go on come before those that begin
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_UNIT_ORDER_H
