//===- prescaled.cpp - The factor that gradients arrive with --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/prescaled.h"

#include <charconv>
#include <cmath>

using namespace zero_rt;

std::string Prescaled::text() const {
  return std::to_string(numerator) + "/" + std::to_string(denominator) + "," +
         std::to_string(passesPower) + "," + std::to_string(tokensPower);
}

Prescaled zero_rt::prescaledOf(const zero_rt_accumulator_row &row) {
  return {row.numerator, row.denominator, row.passes_power, row.tokens_power};
}

/// Reads a number, and |end| behind it.
static bool takeNumber(std::string_view &text, std::string_view end,
                       int64_t &out) {
  auto [last, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc())
    return false;
  text.remove_prefix(size_t(last - text.data()));
  if (text.substr(0, end.size()) != end)
    return false;
  text.remove_prefix(end.size());
  return true;
}

bool zero_rt::readPrescaled(std::string_view text, Prescaled &out) {
  constexpr int64_t mostPower = 8;
  return takeNumber(text, "/", out.numerator) &&
         takeNumber(text, ",", out.denominator) &&
         takeNumber(text, ",", out.passesPower) &&
         takeNumber(text, "", out.tokensPower) && text.empty() &&
         out.numerator >= 0 && out.denominator >= 0 &&
         (out.numerator == 0) == (out.denominator == 0) &&
         std::abs(out.passesPower) <= mostPower &&
         std::abs(out.tokensPower) <= mostPower;
}

bool zero_rt::divide(const Prescaled &mine, const Prescaled &stored,
                     Quotient passes, Quotient &out) {
  out = {};
  if (mine.numerator == 0 || stored.numerator == 0)
    return false;
  out.numerator = double(mine.numerator) * double(stored.denominator);
  out.denominator = double(mine.denominator) * double(stored.numerator);
  for (int64_t i = 0; i < std::abs(mine.passesPower); ++i) {
    bool isDivided = mine.passesPower < 0;
    out.numerator *= isDivided ? passes.denominator : passes.numerator;
    out.denominator *= isDivided ? passes.numerator : passes.denominator;
  }
  return true;
}
