// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warm-up over 100 steps, then half a cosine down to a tenth at step 1000. `step` is
// the number of this step, from 1; one that is skipped does not count.

zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  %peak = arith.constant 3.0e-4 : f64
  %floor = arith.constant 0.1 : f64
  %warmup = arith.constant 100.0 : f64
  %total = arith.constant 1000.0 : f64
  %zero = arith.constant 0.0 : f64
  %half = arith.constant 0.5 : f64
  %one = arith.constant 1.0 : f64

  // How much of the decay is over.
  %behind = arith.subf %step, %warmup : f64
  %length = arith.subf %total, %warmup : f64
  %part = arith.divf %behind, %length : f64
  %begun = arith.maximumf %part, %zero : f64
  %x = arith.minimumf %begun, %one : f64

  // cos(pi x) as the sine of y = pi (1/2 - x) by its series, good to a few units in
  // the last place: a library's cosine has other bits on another machine.
  %pi = arith.constant 3.14159265358979312e+00 : f64
  %middle = arith.subf %half, %x : f64
  %y = arith.mulf %pi, %middle : f64
  %square = arith.mulf %y, %y : f64
  %c1 = arith.constant 1.00000000000000000e+00 : f64
  %c3 = arith.constant -1.66666666666666657e-01 : f64
  %c5 = arith.constant 8.33333333333333322e-03 : f64
  %c7 = arith.constant -1.98412698412698413e-04 : f64
  %c9 = arith.constant 2.75573192239858925e-06 : f64
  %c11 = arith.constant -2.50521083854417202e-08 : f64
  %c13 = arith.constant 1.60590438368216133e-10 : f64
  %c15 = arith.constant -7.64716373181981641e-13 : f64
  %c17 = arith.constant 2.81145725434552060e-15 : f64
  %c19 = arith.constant -8.22063524662432950e-18 : f64
  %c21 = arith.constant 1.95729410633912626e-20 : f64
  %p19 = math.fma %c21, %square, %c19 : f64
  %p17 = math.fma %p19, %square, %c17 : f64
  %p15 = math.fma %p17, %square, %c15 : f64
  %p13 = math.fma %p15, %square, %c13 : f64
  %p11 = math.fma %p13, %square, %c11 : f64
  %p9 = math.fma %p11, %square, %c9 : f64
  %p7 = math.fma %p9, %square, %c7 : f64
  %p5 = math.fma %p7, %square, %c5 : f64
  %p3 = math.fma %p5, %square, %c3 : f64
  %p1 = math.fma %p3, %square, %c1 : f64
  %cosine = arith.mulf %p1, %y : f64

  // floor + (1 - floor) (1 + cosine) / 2
  %raised = arith.addf %one, %cosine : f64
  %wave = arith.mulf %raised, %half : f64
  %range = arith.subf %one, %floor : f64
  %fall = math.fma %range, %wave, %floor : f64

  %rise = arith.divf %step, %warmup : f64
  %share = arith.minimumf %rise, %fall : f64
  %lr = arith.mulf %peak, %share : f64
  zero.yield %lr : f64
} next {
^next(%skipped: i1, %step: f64):
  %one = arith.constant 1.0 : f64
  %more = arith.addf %step, %one : f64
  %next = arith.select %skipped, %step, %more : f64
  zero.yield %next : f64
}
