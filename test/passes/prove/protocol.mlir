// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the walk over the protocol finds.
//
// DEFINE: %{stage} = stage0
// DEFINE: %{edit} =
// DEFINE: %{check} =
// DEFINE: %{bad} = bash -c 'sed "$1" %zero_src/test/known-bugs/Inputs/%{stage}.mlir | not zero-opt --zero-prove 2>&1' - %{edit} | FileCheck %s --check-prefix=%{check}
//
// REDEFINE: %{edit} = '/transition next on apply/d'
// REDEFINE: %{check} = NOAPPLY
// RUN: %{bad}
// NOAPPLY: error: apply is refused in state 'next', in which a backward pass is open
//
// REDEFINE: %{edit} = 's/transition between on begin to next/transition between on begin to first/'
// REDEFINE: %{check} = OVER
// RUN: %{bad}
// OVER: error: 'zrt.pack' op writes over @b0.gradient, which counts as accumulator: what earlier backward passes left is lost
//
// REDEFINE: %{edit} = 's/transition first on arrive to first/transition first on arrive to next/'
// REDEFINE: %{check} = ARRIVE
// RUN: %{bad}
// ARRIVE: error: a gradient that arrives leads to state 'next'
//
// REDEFINE: %{edit} = 's/transition between on apply to idle/transition between on apply to next/'
// REDEFINE: %{check} = NEXT
// RUN: %{bad}
// NEXT: error: apply leads to state 'next', expected 'idle', where steps begin
//
// REDEFINE: %{edit} = '/zrt.commit/d'
// REDEFINE: %{check} = SETTLE
// RUN: %{bad}
// SETTLE: error: apply in state 'first' never commits
//
// REDEFINE: %{edit} = 's/first on discard to idle run \[\]/first on discard to idle run [@close_first, @begin_next]/'
// REDEFINE: %{check} = DISCARD
// RUN: %{bad}
// DISCARD: error: @b0.gradient counts as accumulator after the step, expected gradient
//
// REDEFINE: %{stage} = stage2
// A gradient of a bucket that may be open at the same time.
//
// REDEFINE: %{edit} = 's/zrt.reduce_scatter @b0.gradient to @b0.reduced over .dp./&\n zrt.all_reduce @b1.gradient over [dp]/'
// REDEFINE: %{check} = OPEN
// RUN: %{bad}
// OPEN: error: 'zrt.all_reduce' op uses @b1.gradient, into which gradients of a bucket that is still open may arrive at the same time
//
// A collective that does not wait for what it sends.
//
// RUN: zero-opt %zero_src/test/known-bugs/Inputs/stage2.mlir --zrt-schedule --zrt-elide-waits > %t.scheduled.mlir
// RUN: zero-opt %t.scheduled.mlir --zero-prove -o /dev/null
// RUN: sed '/zrt.wait @scalars.run_scalars on collective/d' %t.scheduled.mlir > %t.race.mlir
// RUN: not zero-opt %t.race.mlir --zero-prove 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: 'zrt.all_reduce_scalars' op races with 'zrt.run_scalars' on stream 'compute' for @statistics: on apply in state '{{.*}}', stream 'collective' does not wait for an event behind that
// RACE: note: which is here
