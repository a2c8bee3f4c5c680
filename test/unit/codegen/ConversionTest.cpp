//===- ConversionTest.cpp - Float conversions of CPU kernels, bit for bit -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include <cmath>

using namespace zero::test;

namespace {

template <typename To, typename From> To bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

/// A 16-bit format: |bits| of fraction, the exponent of its smallest subnormal,
/// and its infinity.
struct Format {
  int fraction;
  int smallest;
  uint16_t infinity;
};
constexpr Format kBF16{7, -133, 0x7f80};
constexpr Format kF16{10, -24, 0x7c00};

/// |value| rounded once to the nearest, by scaling and not by bits.
uint16_t round(double value, Format format) {
  if (std::isnan(value)) // some NaN; callers compare only that
    return format.infinity + 1;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (std::isinf(value))
    return sign | format.infinity;
  if (value == 0)
    return sign;
  int quantum = std::max(std::ilogb(value) - format.fraction, format.smallest);
  int64_t units = std::llrint(std::ldexp(value, -quantum));
  // A carry into the exponent is what the addition makes of it.
  int64_t bits =
      (int64_t(quantum - format.smallest) << format.fraction) + units;
  return sign | std::min<int64_t>(bits, format.infinity);
}

uint16_t toBF16(double value) {
  return std::isnan(value) ? 0x7fc0 : round(value, kBF16);
}

/// As the machine converts: a NaN keeps its sign and the top of its payload.
uint16_t toF16(double value) {
  if (!std::isnan(value))
    return round(value, kF16);
  uint64_t bits = bitcast<uint64_t>(value);
  return (bits >> 63 << 15) | 0x7e00 | (bits >> 42 & 0x3ff);
}

float fromBF16(uint16_t bits) { return bitcast<float>(uint32_t(bits) << 16); }

float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  int exponent = bits >> 10 & 0x1f;
  uint32_t fraction = bits & 0x3ff;
  if (exponent == 31)
    return bitcast<float>(sign | 0x7f800000 | fraction << 13 |
                          (fraction ? 0x400000 : 0));
  float magnitude = exponent == 0
                        ? std::ldexp(float(fraction), -24)
                        : std::ldexp(float(fraction | 0x400), exponent - 25);
  return std::copysign(magnitude, sign ? -1.0f : 1.0f);
}

/// A double keeps the payload of a NaN and makes it quiet.
double fromQuieted(float value) {
  if (!std::isnan(value))
    return value;
  uint64_t bits = bitcast<uint32_t>(value);
  return bitcast<double>((bits >> 31 << 63) | 0x7ff8000000000000 |
                         (bits & 0x7fffff) << 29);
}

std::string conversion(const std::string &name, const std::string &op,
                       const std::string &from, const std::string &to) {
  return "zrt.kernel @" + name + " [read " + from + ", write " + to +
         "] scalars 0 {\n^body(%x: " + from + "):\n%y = arith." + op +
         " %x : " + from + " to " + to + "\nzrt.yield %y : " + to + "\n}\n";
}

class Conversion : public testing::TestWithParam<Target> {
protected:
  template <typename From, typename To, typename Reference>
  void check(const char *name, Array<From> &in, Reference reference) {
    Array<To> out(in.size()), expected(in.size());
    for (int64_t i = 0; i < in.size(); ++i)
      expected[i] = reference(in[i]);
    void *operands[] = {in.data(), out.data()};
    library().kernel(name)(operands, nullptr, 0, in.size(), nullptr);
    for (int64_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(std::memcmp(&out[i], &expected[i], sizeof(To)), 0)
          << name << " of element " << i << ", " << double(in[i]) << ": got "
          << double(out[i]) << ", expected " << double(expected[i]);
    expectSame(out, expected);
  }

  KernelLibrary &library() {
    if (!loaded)
      loaded = std::make_unique<KernelLibrary>(
          conversion("bf16_f32", "extf", "bf16", "f32") +
              conversion("bf16_f64", "extf", "bf16", "f64") +
              conversion("f16_f32", "extf", "f16", "f32") +
              conversion("f16_f64", "extf", "f16", "f64") +
              conversion("f32_bf16", "truncf", "f32", "bf16") +
              conversion("f64_bf16", "truncf", "f64", "bf16") +
              conversion("f32_f16", "truncf", "f32", "f16") +
              conversion("f64_f16", "truncf", "f64", "f16") +
              conversion("f64_f32", "truncf", "f64", "f32"),
          GetParam());
    return *loaded;
  }

private:
  std::unique_ptr<KernelLibrary> loaded;
};

/// All 16-bit patterns, with an odd number of them.
Array<uint16_t> allNarrow() {
  Array<uint16_t> all(65536 + 5);
  for (int64_t i = 0; i < all.size(); ++i)
    all[i] = i;
  return all;
}

/// Random bits, the neighborhood of every value and tie of both formats, and
/// what is special.
Array<double> wide() {
  std::vector<double> values = {0.0,
                                INFINITY,
                                NAN,
                                5e-324,
                                1e-310,
                                1e-45,
                                0x1p-134,
                                0x1p-150,
                                0x1p-149,
                                0x1.8p-149,
                                0x1p-25,
                                0x1.fffffffffffffp1023,
                                0x1.fffffep127,
                                0x1.ffp127,
                                65504,
                                65520,
                                0x1.ffdfffffffffp15};
  for (uint32_t bits = 0; bits < 0x8000; ++bits) {
    for (float value : {fromBF16(bits), fromF16(bits)}) {
      double tie = value + (round(value, kF16) == bits
                                ? double(fromF16(bits + 1)) - value
                                : double(fromBF16(bits + 1)) - value) /
                               2;
      for (double near : {double(value), tie})
        for (double toward : {-INFINITY, INFINITY}) {
          values.push_back(near);
          values.push_back(std::nextafter(near, toward));
          values.push_back(std::nextafter(float(near), float(toward)));
        }
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    values.push_back(bitcast<double>(random()));
    values.push_back(bitcast<float>(uint32_t(random())));
    values.push_back(std::ldexp(double(random()), int(random() % 340) - 220));
  }
  Array<double> all(2 * values.size() + 1);
  all[all.size() - 1] = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    all[2 * i] = values[i];
    all[2 * i + 1] = -values[i];
  }
  return all;
}

/// The same as f32, and random patterns, signaling NaNs among them.
Array<float> single() {
  Array<double> from = wide();
  Array<float> all(from.size() + 300001);
  std::mt19937 random(2);
  for (int64_t i = 0; i < all.size(); ++i)
    all[i] =
        i < from.size() ? float(from[i]) : bitcast<float>(uint32_t(random()));
  return all;
}

} // namespace

TEST_P(Conversion, WidensEveryNarrowValueExactly) {
  Array<uint16_t> in = allNarrow();
  check<uint16_t, float>("bf16_f32", in, fromBF16);
  check<uint16_t, float>("f16_f32", in, fromF16);
  check<uint16_t, double>("bf16_f64", in, [](uint16_t bits) {
    return fromQuieted(fromBF16(bits));
  });
  check<uint16_t, double>(
      "f16_f64", in, [](uint16_t bits) { return fromQuieted(fromF16(bits)); });
}

TEST_P(Conversion, RoundsSingleToNearestEven) {
  Array<float> in = single();
  check<float, uint16_t>("f32_bf16", in, toBF16);
  check<float, uint16_t>("f32_f16", in, toF16);
}

TEST_P(Conversion, RoundsDoubleOnce) {
  Array<double> in = wide();
  check<double, uint16_t>("f64_bf16", in, toBF16);
  check<double, uint16_t>("f64_f16", in, toF16);
  check<double, float>("f64_f32", in, [](double x) { return float(x); });
}

// 1 + 2^-8 + 2^-40 is above a tie of bf16, and f32 cannot see it.
TEST_P(Conversion, DoesNotRoundTwice) {
  Array<double> in(40);
  for (int64_t i = 0; i < in.size(); ++i)
    in[i] = 1 + 0x1p-8 + 0x1p-40;
  Array<uint16_t> out(in.size());
  void *operands[] = {in.data(), out.data()};
  library().kernel("f64_bf16")(operands, nullptr, 0, in.size(), nullptr);
  for (int64_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(out[i], 0x3f81);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conversion, testing::ValuesIn(getTargets()),
                         printTarget);
