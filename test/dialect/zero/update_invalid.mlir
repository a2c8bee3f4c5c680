// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: split-file %s %t
// RUN: not zero-opt %t/group.mlir 2>&1 | FileCheck %t/group.mlir
// RUN: not zero-opt %t/count.mlir 2>&1 | FileCheck %t/count.mlir
// RUN: not zero-opt %t/unknown.mlir 2>&1 | FileCheck %t/unknown.mlir
// RUN: not zero-opt %t/missing.mlir 2>&1 | FileCheck %t/missing.mlir
// RUN: not zero-opt %t/twice.mlir 2>&1 | FileCheck %t/twice.mlir
// RUN: not zero-opt %t/partial.mlir 2>&1 | FileCheck %t/partial.mlir
//
// Rules of zero.update.

//--- group.mlir
// update_c1
// CHECK: parameter group @g is not a zero.group of this module
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%r: !zero.value<f64>) {
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<f64>), ()
  zero.return []
}

//--- count.mlir
// update_c2
// CHECK: parameter group @g has 2 members, got 1 gradient
// CHECK: note: parameter group is declared here
zero.mesh @m <["dp" = 2]>
zero.parameter @v : f64
zero.parameter @w : f64
zero.group @g [@v, @w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%r: !zero.value<f64>) {
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<f64>), ()
  zero.return []
}

//--- unknown.mlir
// update_c4
// CHECK: optimizer @sgd has no hyperparameter "learning_rate"
// CHECK: note: its hyperparameters are ["lr"]
zero.mesh @m <["dp" = 2]>
zero.parameter @w : f64
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%r: !zero.value<f64>) {
  zero.update @g with @sgd(%r) hyper(learning_rate = 0.1) : (!zero.value<f64>), ()
  zero.return []
}

//--- missing.mlir
// update_c4
// CHECK: hyperparameter "lr" of optimizer @sgd has neither a value nor a default
zero.mesh @m <["dp" = 2]>
zero.parameter @w : f64
zero.group @g [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  zero.yield %p : f32
}
zero.step @s on @m normalize() (%r: !zero.value<f64>) {
  zero.update @g with @sgd(%r) hyper() : (!zero.value<f64>), ()
  zero.return []
}

//--- twice.mlir
// update_c4
// CHECK: hyperparameter 'lr' is given twice
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%r: !zero.value<f64>) {
  zero.update @g with @sgd(%r) hyper(lr = 0.1, lr = %r) : (!zero.value<f64>), (!zero.value<f64>)
  zero.return []
}

//--- partial.mlir
// update_c3: #7981, a gradient of one backward pass reaches the update.
// CHECK: operand must be reduced, got partial over 'micro'
zero.mesh @m <["dp" = 2]>
zero.step @s on @m normalize() (%r: !zero.value<f64, partial = [micro]>) {
  zero.update @g with @sgd(%r) hyper(lr = 0.1) : (!zero.value<f64, partial = [micro]>), ()
  zero.return []
}
