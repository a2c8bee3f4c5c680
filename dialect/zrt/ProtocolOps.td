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
  let summary = "The order in which a backward's buckets are closed";
  let description = [{
    Bucket i is closed by handler i: as soon as all its gradients arrived and every
    bucket before it is closed, and at the latest with the backward pass. So the order
    of collectives never depends on the order of arrivals.

    Only `window` buckets are open at once, the ones after the last closed. A
    gradient of a later one waits in the caller's tensor; its release point tells
    when it was taken.

    Constraints:

    - `sequence_c1`: there is a handler per bucket, and both exist;
    - `sequence_c2`: the window holds at least one bucket;
    - `sequence_c3`: each bucket with arrivals is listed once;
    - `sequence_c4`: gradients of buckets that may be open together do not share
      memory;
    - `sequence_c5`: a bucket's handler fills what is missing in no other bucket (that
      it does so in its own where gradients are stored, the proof looks after);
    - `sequence_c6`: the handler of a bucket that is on some pipeline stages works on
      what is on the same ones: the others never run it.

    Example:

    ```mlir
    zrt.sequence @first [@b0, @b1] run [@b0.close_first, @b1.close_first] window 2
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$buckets,
                       FlatSymbolRefArrayAttr:$handlers, I64Attr:$window);
  let assemblyFormat = [{
    $sym_name $buckets `run` $handlers `window` $window attr-dict
  }];
}

def Zrt_TransitionOp : Zrt_UserOp<"transition"> {
  let summary = "What an event does in a state of the protocol";
  let description = [{
    The first transition's state is the initial one. What is not listed is
    refused at run time, with the state's name.

    With a sequence, an arrival runs its handlers once its bucket is open, and then
    the sequence advances; any other event first runs the sequence to its end.

    `begin_last` is a begin of which the caller says that it is the last before
    apply. Where it is not listed, it is a `begin`. The caller may be wrong: what
    follows must be right in any case.

    Constraints:

    - `transition_c1`: a state has one transition per event;
    - `transition_c2`: handlers and sequence exist;
    - `transition_c3`: what may happen to an open backward pass (all events that begin
      none) has one sequence, or none; a begin has none;
    - `transition_c4`: a state that lists `begin_last` lists `begin`.

    Example:

    ```mlir
    zrt.transition idle on begin to first run []
    ```
  }];
  let arguments = (ins StrAttr:$state, Zrt_EventAttr:$event, StrAttr:$next,
                       FlatSymbolRefArrayAttr:$handlers,
                       OptionalAttr<FlatSymbolRefAttr>:$sequence);
  let assemblyFormat = [{
    custom<Keyword>($state) `on` custom<Event>($event) `to` custom<Keyword>($next)
    `run` $handlers (`sequence` $sequence^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether a backward pass begins, whatever the caller says of it.
    bool begins() {
      return getEvent() == Event::begin || getEvent() == Event::begin_last;
    }
  }];
}

def Zrt_HandlerOp : Zrt_SymbolOp<"handler",
    [NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "A straight line of runtime calls";
  let description = [{
    Runs when a transition of the protocol says so. Each op is one call.

    Constraints:

    - `handler_c1`: the body holds only ops that are calls of the runtime.

    Example:

    ```mlir
    zrt.handler @finish {
      %t0 = zrt.all_reduce @b0.gradient over [dp] after()
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region MaxSizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

#endif // ZRT_PROTOCOL_OPS_TD
