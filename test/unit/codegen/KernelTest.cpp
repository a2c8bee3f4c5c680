//===- KernelTest.cpp - Element-wise CPU kernels, bit for bit -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include <cmath>

using namespace zero::test;

namespace {

float fromBF16(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

/// For what is no NaN.
uint16_t toBF16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return (word + 0x7fff + (word >> 16 & 1)) >> 16;
}

const char *const kKernels = R"(
zrt.kernel @store [read bf16, write f32] scalars 0 {
^body(%g: bf16):
  %x = arith.extf %g : bf16 to f32
  zrt.yield %x : f32
}
zrt.kernel @copy [read bf16, write bf16] scalars 0 {
^body(%g: bf16):
  zrt.yield %g : bf16
}
zrt.kernel @copy_f32 [read f32, write f32] scalars 0 {
^body(%g: f32):
  zrt.yield %g : f32
}
zrt.kernel @fill [write f32, write bf16] scalars 1 {
^body(%s: f64):
  %x = arith.truncf %s : f64 to f32
  %c = arith.constant -1.5 : bf16
  zrt.yield %x, %c : f32, bf16
}
zrt.kernel @add [read bf16, update f32] scalars 0 {
^body(%g: bf16, %a: f32):
  %x = arith.extf %g : bf16 to f32
  %s = arith.addf %a, %x : f32
  zrt.yield %s : f32
}
zrt.kernel @mixed [read f64, read i32, update f64, write i32] scalars 1 {
^body(%x: f64, %n: i32, %y: f64, %s: f64):
  %a = math.absf %x : f64
  %r = math.sqrt %a : f64
  %c = math.copysign %r, %y : f64
  %less = arith.cmpf olt, %c, %s : f64
  %t = math.fma %c, %s, %y : f64
  %u = arith.select %less, %t, %c : f64
  %m = arith.minimumf %u, %x fastmath<fast> : f64
  %b = arith.bitcast %c : f64 to i64
  %i = arith.trunci %b : i64 to i32
  %j = arith.addi %n, %i : i32
  zrt.yield %m, %j : f64, i32
}
)";

/// The update of examples/quickstart.mlir, with a factor on the gradient.
std::string getAdamW(const std::string &gradient) {
  std::string widened =
      gradient == "f32" ? "" : "%g0 = arith.extf %ga : bf16 to f32\n";
  std::string name = gradient == "f32" ? "%ga" : "%g0";
  return "zrt.kernel @adamw_" + gradient + " [read " + gradient +
         ", update f32, update f32, update f32, write bf16] scalars 12 "
         "predicated {\n^body(%ga: " +
         gradient + R"(, %p: f32, %m: f32, %v: f32,
    %found: f64, %f: f64, %s0: f64, %s1: f64, %s2: f64, %s3: f64, %s4: f64,
    %s5: f64, %s6: f64, %s7: f64, %unused0: f64, %unused1: f64):
  %factor = arith.truncf %f : f64 to f32
  %keep = arith.truncf %s0 : f64 to f32
  %step = arith.truncf %s1 : f64 to f32
  %beta1 = arith.truncf %s2 : f64 to f32
  %ob1 = arith.truncf %s3 : f64 to f32
  %beta2 = arith.truncf %s4 : f64 to f32
  %ob2 = arith.truncf %s5 : f64 to f32
  %inv_root = arith.truncf %s6 : f64 to f32
  %eps = arith.truncf %s7 : f64 to f32
)" + widened +
         "%g = arith.mulf " + name + R"(, %factor : f32
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %g, %ob1, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv_root, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  %out = arith.truncf %p1 : f32 to bf16
  zrt.yield %p1, %m1, %v1, %out : f32, f32, f32, bf16
}
)";
}

struct AdamW {
  explicit AdamW(int64_t size) : p(size), m(size), v(size), out(size) {}

  void update(int64_t i, float gradient, const double *scalars) {
    float g = gradient * float(scalars[1]);
    m[i] = std::fma(g, float(scalars[5]), m[i] * float(scalars[4]));
    v[i] = std::fma(g * g, float(scalars[7]), v[i] * float(scalars[6]));
    float d = std::fma(std::sqrt(v[i]), float(scalars[8]), float(scalars[9]));
    p[i] = std::fma(m[i] / d, float(scalars[3]), p[i] * float(scalars[2]));
    out[i] = toBF16(p[i]);
  }

  Array<float> p, m, v;
  Array<uint16_t> out;
};

class Kernel : public testing::TestWithParam<Target> {
protected:
  /// Calls |check| with ranges of all sizes from aligned and other begins on.
  template <typename Check> void forRanges(Check check) {
    for (int64_t size : kSizes)
      for (int64_t begin : {0, 1, 17, 32}) {
        SCOPED_TRACE(testing::Message() << begin << " + " << size);
        check(begin, begin + size);
      }
  }

  void checkAdamW(const char *name, bool narrow);

  std::mt19937 random{4};
  /// Mostly of a usual size, some subnormal.
  float number() {
    float value = std::normal_distribution<float>()(random);
    return random() % 16 == 0 ? value * 1e-40f : value;
  }
};

void Kernel::checkAdamW(const char *name, bool narrow) {
  KernelLibrary library(getAdamW("bf16") + getAdamW("f32"), GetParam());
  for (double found : {0.0, 1.0, double(NAN)})
    forRanges([&](int64_t begin, int64_t end) {
      double scalars[12] = {found, 0.37, 1 - 1e-4,      -1e-3, 0.9, 1 - 0.9,
                            0.999, 1e-3, 1 / 0.0316228, 1e-8,  0,   0};
      AdamW actual(end);
      Array<float> wide(end);
      Array<uint16_t> small(end);
      for (int64_t i = 0; i < end; ++i) {
        small[i] = toBF16(number());
        wide[i] = narrow ? fromBF16(small[i]) : number();
        actual.p[i] = number();
        actual.m[i] = number();
        actual.v[i] = std::fabs(number());
      }
      AdamW expected = actual;
      if (found == 0)
        for (int64_t i = begin; i < end; ++i)
          expected.update(i, wide[i], scalars);
      void *gradient = narrow ? static_cast<void *>(small.data())
                              : static_cast<void *>(wide.data());
      void *operands[] = {gradient, actual.p.data(), actual.m.data(),
                          actual.v.data(), actual.out.data()};
      library.kernel(name)(operands, scalars, begin, end, nullptr);
      expectSame(actual.p, expected.p);
      expectSame(actual.m, expected.m);
      expectSame(actual.v, expected.v);
      expectSame(actual.out, expected.out);
    });
}

} // namespace

TEST_P(Kernel, StoresAndAddsOnlyItsRange) {
  KernelLibrary library(kKernels, GetParam());
  forRanges([&](int64_t begin, int64_t end) {
    Array<uint16_t> gradient(end);
    Array<float> buffer(end);
    for (int64_t i = 0; i < end; ++i)
      gradient[i] = toBF16(number());
    Array<float> expected = buffer;
    void *operands[] = {gradient.data(), buffer.data()};

    for (int64_t i = begin; i < end; ++i)
      expected[i] = fromBF16(gradient[i]);
    library.kernel("store")(operands, nullptr, begin, end, nullptr);
    expectSame(buffer, expected);

    for (int64_t i = 0; i < end; ++i)
      buffer[i] = expected[i] = number();
    for (int64_t i = begin; i < end; ++i)
      expected[i] = expected[i] + fromBF16(gradient[i]);
    library.kernel("add")(operands, nullptr, begin, end, nullptr);
    expectSame(buffer, expected);
  });
}

TEST_P(Kernel, CopiesAnyBits) {
  KernelLibrary library(kKernels, GetParam());
  forRanges([&](int64_t begin, int64_t end) {
    Array<uint16_t> in(end), out(end);
    Array<uint32_t> wideIn(end), wideOut(end);
    for (int64_t i = 0; i < end; ++i) {
      in[i] = random();
      wideIn[i] = random();
    }
    Array<uint16_t> expected = out;
    Array<uint32_t> wideExpected = wideOut;
    for (int64_t i = begin; i < end; ++i) {
      expected[i] = in[i];
      wideExpected[i] = wideIn[i];
    }
    void *operands[] = {in.data(), out.data()};
    library.kernel("copy")(operands, nullptr, begin, end, nullptr);
    expectSame(out, expected);
    void *wideOperands[] = {wideIn.data(), wideOut.data()};
    library.kernel("copy_f32")(wideOperands, nullptr, begin, end, nullptr);
    expectSame(wideOut, wideExpected);
  });
}

TEST_P(Kernel, FillsWithWhatIsTheSameForAllElements) {
  KernelLibrary library(kKernels, GetParam());
  forRanges([&](int64_t begin, int64_t end) {
    Array<float> out(end);
    Array<uint16_t> narrow(end);
    Array<float> expected = out;
    Array<uint16_t> narrowExpected = narrow;
    for (int64_t i = begin; i < end; ++i) {
      expected[i] = 0.1f;
      narrowExpected[i] = toBF16(-1.5f);
    }
    double scalars[] = {0.1};
    void *operands[] = {out.data(), narrow.data()};
    library.kernel("fill")(operands, scalars, begin, end, nullptr);
    expectSame(out, expected);
    expectSame(narrow, narrowExpected);
  });
}

TEST_P(Kernel, RunsOtherOpsAndTypes) {
  KernelLibrary library(kKernels, GetParam());
  forRanges([&](int64_t begin, int64_t end) {
    Array<double> x(end), y(end);
    Array<int32_t> n(end), out(end);
    for (int64_t i = 0; i < end; ++i) {
      x[i] = std::ldexp(double(number()), random() % 20);
      y[i] = number();
      n[i] = random();
    }
    double scalar = 0.75;
    Array<double> expected = y;
    Array<int32_t> expectedOut = out;
    for (int64_t i = begin; i < end; ++i) {
      double c = std::copysign(std::sqrt(std::fabs(x[i])), y[i]);
      double u = c < scalar ? std::fma(c, scalar, y[i]) : c;
      expected[i] = u < x[i] ? u : x[i];
      uint64_t bits;
      std::memcpy(&bits, &c, sizeof(bits));
      expectedOut[i] = int32_t(uint32_t(n[i]) + uint32_t(bits));
    }
    void *operands[] = {x.data(), n.data(), y.data(), out.data()};
    library.kernel("mixed")(operands, &scalar, begin, end, nullptr);
    expectSame(y, expected);
    expectSame(out, expectedOut);
  });
}

// One array as a read and a written operand: every element is read first.
TEST_P(Kernel, AllowsTheSameArrayTwice) {
  KernelLibrary library(kKernels, GetParam());
  Array<float> array(1000);
  for (int64_t i = 0; i < array.size(); ++i)
    array[i] = i;
  Array<float> expected = array;
  void *operands[] = {array.data(), array.data()};
  library.kernel("copy_f32")(operands, nullptr, 3, array.size(), nullptr);
  expectSame(array, expected);
}

TEST_P(Kernel, RunsFusedAdamWOnF32) { checkAdamW("adamw_f32", false); }

TEST_P(Kernel, RunsFusedAdamWOnBF16) { checkAdamW("adamw_bf16", true); }

INSTANTIATE_TEST_SUITE_P(Cpu, Kernel, testing::ValuesIn(getTargets()),
                         printTarget);
