//===- unit_order.cpp - Which unit the caller uses next -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/unit_order.h"

#include "core/status.h"
#include "core/step.h"

#include <algorithm>
#include <string>

using namespace zero_rt;

UnitOrder::UnitOrder(const zero_rt_library &library) {
  const int64_t *unit = library.unit_orders;
  for (int64_t o = 0; o < library.num_unit_orders; ++o) {
    std::vector<int64_t> order;
    for (const int64_t *end = unit + library.num_units; unit < end; ++unit)
      if (!isElsewhere(library.units[*unit]))
        order.push_back(*unit);
    // Orders may differ on other pipeline stages only.
    if (std::none_of(orders.begin(), orders.end(),
                     [&](const Order &other) { return other.units == order; }))
      orders.push_back({std::move(order), size_t(library.unit_prefetches[o])});
  }
}

static std::string quoteUnit(const Step &step, int64_t unit) {
  return std::string("'") + step.text(step.library->units[unit].name) + "'";
}

/// The first position from |from| on of a unit that is not unsharded.
size_t UnitOrder::skip(const Step &step, size_t order, size_t from) const {
  const std::vector<int64_t> &units = orders[order].units;
  while (from < units.size() &&
         step.units[size_t(units[from])].phase == UnitState::Phase::Unsharded)
    ++from;
  return from;
}

bool UnitOrder::isAt(size_t order, size_t position, int64_t unit) const {
  const std::vector<int64_t> &units = orders[order].units;
  return position < units.size() && units[position] == unit;
}

bool UnitOrder::isAtEnd(const Step &step, const Place &place) const {
  return listNext(step, place, 1).empty();
}

/// Up to |count| units behind |place| that are not unsharded.
std::vector<int64_t> UnitOrder::listNext(const Step &step, const Place &place,
                                         size_t count) const {
  const std::vector<int64_t> &units = orders[place.order].units;
  std::vector<int64_t> next;
  size_t p = skip(step, place.order, place.position);
  for (; p < units.size() && next.size() < count;
       p = skip(step, place.order, p + 1))
    next.push_back(units[p]);
  return next;
}

/// Behind another order, or anew where the caller has given it up.
bool UnitOrder::mayBegin(const Step &step, size_t order) const {
  return places.empty() ||
         std::any_of(places.begin(), places.end(), [&](const Place &place) {
           return place.order == order || place.isOfBackward ||
                  isAtEnd(step, place);
         });
}

void UnitOrder::add(std::vector<Place> &places, const Place &place) {
  for (const Place &other : places)
    if (other.order == place.order && other.position == place.position)
      return;
  places.push_back(place);
}

zero_rt_status UnitOrder::advance(const Step &step, int64_t unit) {
  if (orders.empty())
    return ZERO_RT_OK;
  std::vector<Place> next;
  for (const Place &place : places)
    if (size_t p = skip(step, place.order, place.position);
        isAt(place.order, p, unit))
      add(next, {place.order, p + 1, place.isOfBackward});
  for (size_t order = 0; order < orders.size(); ++order)
    if (size_t p = skip(step, order, 0);
        isAt(order, p, unit) && mayBegin(step, order))
      add(next, {order, p + 1, step.window.isOpen()});
  if (next.empty())
    return refuse(step, unit);
  places = std::move(next);
  return ZERO_RT_OK;
}

void UnitOrder::noteReshard(const Step &step, int64_t unit) {
  if (!step.window.isOpen())
    return;
  for (Place &place : places)
    if (isAt(place.order, place.position, unit))
      ++place.position;
  for (size_t order = 0; order < orders.size(); ++order)
    if (isAt(order, 0, unit) && mayBegin(step, order))
      add(places, {order, 1, true});
}

std::vector<int64_t> UnitOrder::listAhead(const Step &step) const {
  if (places.empty())
    return {};
  const Place &place = places.front();
  return listNext(step, place, orders[place.order].prefetch);
}

zero_rt_status UnitOrder::refuse(const Step &step, int64_t unit) const {
  std::string expected;
  if (!places.empty() && !isAtEnd(step, places.front())) {
    const Place &place = places.front();
    expected = quoteUnit(step, listNext(step, place, 1).front()) + " follows " +
               quoteUnit(step, orders[place.order].units[place.position - 1]);
  } else {
    for (size_t order = 0; order < orders.size(); ++order)
      for (int64_t first : listNext(step, {order, 0, false}, 1))
        expected += (expected.empty() ? "" : " or ") + quoteUnit(step, first);
    expected += " is first";
  }
  return fail(ZERO_RT_PROTOCOL,
              "unshard of %s: %s in the order that step '%s' declares; unshard "
              "that, or compile the step without --unit-order",
              quoteUnit(step, unit).c_str(), expected.c_str(),
              step.library->name);
}
