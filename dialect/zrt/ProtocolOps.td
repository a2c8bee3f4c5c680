//===- ProtocolOps.td - When the calls of a program run ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_PROTOCOL_OPS_TD
#define ZRT_PROTOCOL_OPS_TD

include "dialect/zrt/TableOps.td"

def Zrt_SequenceOp : Zrt_SymbolOp<"sequence",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The order in which the buckets of a backward pass are closed";
  let description = [{
    Handler i closes bucket i. It runs as soon as all gradients of the bucket have arrived and
    every earlier bucket is closed, and at the latest when the backward pass is closed. So the
    order of collectives does not depend on the order in which gradients arrive.

    A bucket is open as soon as every earlier bucket whose gradients use the same memory is
    closed. A gradient of a bucket that is not open yet waits in the caller's tensor. Its
    release point tells the caller when the gradient was taken.

    A bucket of a unit with a `zrt.unit_table` is complete when its unit is resharded, whatever
    has arrived. Reason: ranks gather units and close buckets in one order, which must not
    depend on the gradients of a rank. A gradient that arrives after that is refused.

    Constraints:

    - `sequence_c1`: there is one handler per bucket, and handlers and buckets exist;
    - `sequence_c2`: each bucket with a `zrt.bucket_table` is listed once;
    - `sequence_c3`: the handler of a bucket fills missing gradients of no other bucket. (The
      proof checks that it fills those of its own bucket where gradients are stored.);
    - `sequence_c4`: if a bucket is on some pipeline stages, its handler works on buffers of
      the same stages only. Reason: other stages never run the handler.

    Example:

    ```mlir
    zrt.sequence @first [@b0, @b1] run [@b0.close_first, @b1.close_first]
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$buckets,
                       FlatSymbolRefArrayAttr:$handlers);
  let assemblyFormat = "$sym_name $buckets `run` $handlers attr-dict";
}

def Zrt_TransitionOp : Zrt_UserOp<"transition"> {
  let summary = "The effect of an event in a state of the protocol";
  let description = [{
    The state of the first transition is the initial state. An event without a transition is
    refused at run time, and the message names the state.

    With a sequence, an arrival runs its handlers once its bucket is open, and then the
    sequence advances. Any other event first runs the sequence to its end.

    `begin_last` begins a backward pass with the caller's hint that it is the last one before
    apply. In a state that does not list `begin_last`, the event is `begin`. The hint may be
    wrong. The result must be right in any case.

    `unshard` and `reshard` are events of a unit. They run a handler of its `zrt.unit_table`. With
    a sequence, `reshard` first closes the buckets that are complete by then.

    `measure` computes what a step reports, such as the norm of the gradients, and its outcome.
    It changes no parameter. The caller then applies the step or discards it. `apply` does both
    at once in a state before `measure`.

    Constraints:

    - `transition_c1`: a state has one transition per event;
    - `transition_c2`: handlers and sequence exist;
    - `transition_c3`: all events of a state that do not begin a backward pass have one
      sequence, or none; `begin` and `begin_last` have none;
    - `transition_c4`: a state that lists `begin_last` lists `begin`;
    - `transition_c5`: a state to which `measure` leads lists `apply` and `discard`, and no other
      event;
    - `transition_c6`: a state with a sequence lists `arrive`. Reason: without an open backward
      pass the runtime would close buckets a second time;
    - `transition_c7`: `unshard` and `reshard` lead to the state itself and run no handlers but
      those of the unit; a state lists both or none.

    Example:

    ```mlir
    zrt.transition idle on begin to first run []
    ```
  }];
  let arguments = (ins Zero_NameAttr:$state, Zrt_EventAttr:$event, Zero_NameAttr:$next,
                       FlatSymbolRefArrayAttr:$handlers,
                       OptionalAttr<FlatSymbolRefAttr>:$sequence);
  let assemblyFormat = [{
    custom<Keyword>($state) `on` custom<Event>($event) `to` custom<Keyword>($next)
    `run` $handlers (`sequence` $sequence^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether the event begins a backward pass, with or without a hint.
    bool begins() {
      return getEvent() == Event::begin || getEvent() == Event::begin_last;
    }
    /// Whether the event is one of a unit.
    bool isOfUnit() {
      return getEvent() == Event::unshard || getEvent() == Event::reshard;
    }
  }];
}

def Zrt_UnitTableOp : Zrt_UserOp<"unit_table"> {
  let summary = "How a unit of parameters is gathered and released";
  let description = [{
    A unit is sharded, or it is unsharded. Between steps it is sharded. The event `unshard` of
    the unit runs its first handler. From then on the `unsharded` buffers of its buckets hold
    whole parameters, and the caller reads them. The event `reshard` runs the second handler,
    when the caller has read them. A caller may have the first handler run ahead. Its waits on
    the stream `caller` are then made when the unit is used; if it is not used, the second
    handler runs as if the caller had used it.

    The runtime refuses `unshard` of a unit that is unsharded, or whose memory another
    unsharded unit uses; `reshard` of a unit that is sharded; and `apply`, `measure` and
    `discard` while a unit is unsharded. All ranks of a pipeline stage make the same sequence of
    these events.

    A table without handlers is of a unit on other pipeline stages. `zrt-select-stage` leaves it,
    since callers number units alike on all stages.

    Constraints:

    - `unit_table_c1`: the unit and the handlers exist, and each unit has one table;
    - `unit_table_c2`: nothing else runs the handlers;
    - `unit_table_c3`: a table has both handlers, or none.

    Example:

    ```mlir
    zrt.unit_table @layer0 unshard @layer0.unshard reshard @layer0.reshard
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit,
                       OptionalAttr<FlatSymbolRefAttr>:$unshard,
                       OptionalAttr<FlatSymbolRefAttr>:$reshard);
  let assemblyFormat = "$unit (`unshard` $unshard^)? (`reshard` $reshard^)? attr-dict";
  let extraClassDeclaration = [{
    /// Whether the unit is on other pipeline stages than the program.
    bool isElsewhere() { return !getUnshardAttr(); }
  }];
}

def Zrt_HandlerOp : Zrt_SymbolOp<"handler",
    [NoTerminator, SingleBlock, IsolatedFromAbove, NoRegionArguments]> {
  let summary = "A list of runtime calls without control flow";
  let description = [{
    Runs when a transition names it. Each op is one call.

    Constraints:

    - `handler_c1`: the body holds only ops that are calls of the runtime;
    - `handler_c2`: of the calls, only `zrt.wait` names the stream `caller`. Reason: no work is
      queued to a stream of the caller.

    Example:

    ```mlir
    zrt.handler @finish {
      zrt.all_reduce @b0.gradient over [dp]
    }
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

#endif // ZRT_PROTOCOL_OPS_TD
