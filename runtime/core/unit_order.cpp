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

static int64_t unitAt(const Step &step, int64_t order, int64_t position) {
  return step.library->unit_orders[order * step.library->num_units + position];
}

static std::string quote(const Step &step, int64_t unit) {
  return std::string("'") + step.text(step.library->units[unit].name) + "'";
}

/// The first position from |from| on of a unit that is not unsharded.
int64_t UnitOrder::skip(const Step &step, int64_t order, int64_t from) {
  while (from < step.library->num_units &&
         step.units[size_t(unitAt(step, order, from))].phase ==
             UnitState::Phase::Unsharded)
    ++from;
  return from;
}

bool UnitOrder::isAtEnd(const Step &step, const Place &place) {
  return skip(step, place.order, place.position) == step.library->num_units;
}

/// Behind another order, or anew where the caller has given it up.
bool UnitOrder::mayBegin(const Step &step, int64_t order) const {
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
  const zero_rt_library &library = *step.library;
  if (library.num_unit_orders == 0)
    return ZERO_RT_OK;
  std::vector<Place> next;
  for (const Place &place : places)
    if (int64_t p = skip(step, place.order, place.position);
        p < library.num_units && unitAt(step, place.order, p) == unit)
      add(next, {place.order, p + 1, place.isOfBackward});
  for (int64_t order = 0; order < library.num_unit_orders; ++order)
    if (int64_t p = skip(step, order, 0); p < library.num_units &&
                                          unitAt(step, order, p) == unit &&
                                          mayBegin(step, order))
      add(next, {order, p + 1, step.window.isOpen()});
  if (next.empty())
    return refuse(step, unit);
  places = std::move(next);
  return ZERO_RT_OK;
}

void UnitOrder::noteReshard(const Step &step, int64_t unit) {
  const zero_rt_library &library = *step.library;
  if (library.num_unit_orders == 0 || !step.window.isOpen())
    return;
  for (Place &place : places)
    if (place.position < library.num_units &&
        unitAt(step, place.order, place.position) == unit)
      ++place.position;
  for (int64_t order = 0; order < library.num_unit_orders; ++order)
    if (unitAt(step, order, 0) == unit && mayBegin(step, order))
      add(places, {order, 1, true});
}

int64_t UnitOrder::peek(const Step &step) const {
  if (places.empty() || isAtEnd(step, places.front()))
    return -1;
  const Place &place = places.front();
  return unitAt(step, place.order, skip(step, place.order, place.position));
}

zero_rt_status UnitOrder::refuse(const Step &step, int64_t unit) const {
  const zero_rt_library &library = *step.library;
  std::string expected;
  if (int64_t next = peek(step); next >= 0) {
    const Place &place = places.front();
    expected = quote(step, next) + " follows " +
               quote(step, unitAt(step, place.order, place.position - 1));
  } else {
    for (int64_t order = 0; order < library.num_unit_orders; ++order)
      if (int64_t p = skip(step, order, 0); p < library.num_units)
        expected += (expected.empty() ? "" : " or ") +
                    quote(step, unitAt(step, order, p));
    expected += " is first";
  }
  return fail(ZERO_RT_PROTOCOL,
              "unshard of %s: %s in the order that step '%s' declares; unshard "
              "that, or compile the step without --unit-order",
              quote(step, unit).c_str(), expected.c_str(), library.name);
}
