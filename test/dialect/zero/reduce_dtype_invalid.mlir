// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// reduce_dtype_c1
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize() () {
  %g = "test.gradient"() : () -> !zero.value<8xbf16, partial = [dp]>
  // expected-error@+1 {{operand is of 'bf16', which does not hold every number of reduce dtype 'f32'}}
  %r = zero.reduce %g reduce_dtype f32 : !zero.value<8xbf16, partial = [dp]>
  zero.return []
}

// -----

// reduce_dtype_c1: neither holds the other
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize() () {
  %g = "test.gradient"() : () -> !zero.value<8xbf16, partial = [dp]>
  // expected-error@+1 {{operand is of 'bf16', which does not hold every number of reduce dtype 'f16'}}
  %r = zero.reduce_scatter %g over [dp] reduce_dtype f16 : !zero.value<8xbf16, partial = [dp]>
  zero.return []
}

// -----

// reduce_dtype_c1
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize() () {
  %g = "test.gradient"() : () -> !zero.value<8xf32, partial = [dp]>
  // expected-error@+1 {{operand is of 'f32', which does not hold every number of reduce dtype 'i8'}}
  %r = zero.all_reduce %g over [dp] reduce_dtype i8 : !zero.value<8xf32, partial = [dp]>
  zero.return []
}

// -----

// reduce_dtype_c1
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize() (%n: !zero.value<f64, partial = [dp]>) {
  // expected-error@+1 {{operand is of scalars, which travel as they are; leave 'reduce_dtype' out}}
  %r = zero.reduce %n reduce_dtype f32 : !zero.value<f64, partial = [dp]>
  zero.return []
}

// -----

// reduce_dtype_c1: several scalars
zero.mesh @m <["dp" = 2]>
zero.step @train on @m normalize() (%n: !zero.value<f64, partial = [dp]>) {
  %s = zero.stack %n, %n : !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
  // expected-error@+1 {{operand is of scalars, which travel as they are; leave 'reduce_dtype' out}}
  %r = zero.all_reduce %s over [dp] reduce_dtype bf16 : !zero.value<2xf64, partial = [dp]>
  zero.return []
}
