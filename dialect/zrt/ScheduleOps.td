//===- ScheduleOps.td - Which calls a stream waits for -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_SCHEDULE_OPS_TD
#define ZRT_SCHEDULE_OPS_TD

include "dialect/zrt/RuntimeCall.td"
include "dialect/zrt/TableOps.td"

/// A call of the runtime. Its work is queued to the stream of the call.
class Zrt_CallOp<string mnemonic, dag extra = (ins), string format = "",
                 list<Trait> traits = [], list<string> overrides = []>
    : Zrt_Op<mnemonic, traits # [
        HasParent<"HandlerOp">, MemoryEffects<[MemRead, MemWrite]>,
        DeclareOpInterfaceMethods<Zrt_RuntimeCall, overrides>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = extra;
  let assemblyFormat = format # " attr-dict";
}

def Zrt_EventOp : Zrt_SymbolOp<"event"> {
  let summary = "A point in a stream, for which other streams can wait";
  let description = [{
    An event names work that a handler leaves in flight. Other handlers and the caller can
    wait for the event. Equivalent to: `cudaEvent_t`.

    The stream `caller` is the stream that the caller passes to `gradient`, `gradient_ready`,
    `apply`, `unshard` or `reshard`. The handlers that these calls run can wait for its work. Each call may pass
    another stream, so a wait in one call implies nothing for the next one.

    Example:

    ```mlir
    zrt.event @b0.reduced.done on collective
    zrt.event @arrive.caller on caller
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, Zrt_StreamAttr:$stream);
  let assemblyFormat = "$sym_name `on` custom<Stream>($stream) attr-dict";
}

def Zrt_RecordOp : Zrt_CallOp<"record",
    (ins FlatSymbolRefAttr:$event), "$event"> {
  let summary = "Records an event on its stream";
  let description = [{
    The event passes when all earlier work of its stream is done. A record replaces the
    previous record of the event. Equivalent to: `cudaEventRecord`.

    On the stream `caller`, earlier work is the work before the call that delivers the
    gradient, or before `apply`, `unshard` or `reshard`. A gradient may wait for its bucket, and its handler then runs
    in a later call. The runtime therefore records the event when the gradient is delivered,
    and keeps this record until the handler runs. If the runtime has copied the waiting
    gradient, the event has passed: the copy is earlier work of the compute stream.

    Constraints:

    - `record_c1`: the event exists;
    - `record_c2`: one call records an event;
    - `record_c3`: only transitions of `arrive`, `measure` and `apply`, and the second handler
      of a unit, record an event of the stream `caller`. Reason: other calls have no stream of
      the caller. The first handler of a unit may run ahead.

    Example:

    ```mlir
    zrt.record @b0.reduced.done
    ```
  }];
}

def Zrt_WaitOp : Zrt_CallOp<"wait",
    (ins FlatSymbolRefAttr:$event, Zrt_StreamAttr:$stream),
    "$event `on` custom<Stream>($stream)"> {
  let summary = "Makes a stream wait for an event";
  let description = [{
    Later work of the stream starts after the last record of the event has passed. An
    event that was never recorded has passed. Reason: a handler may wait for events of other
    paths of the protocol. Equivalent to: `cudaStreamWaitEvent`.

    A wait of the stream `caller` gives the arriving tensor back: the caller may overwrite the
    tensor after the event. If the caller asked for a release timepoint, the timepoint is that
    of the event, and the stream does not wait. If the caller has lent no tensor, nothing
    waits: a gradient view stays lent until the next one, and a gradient that was copied was
    given back with the copy. In a handler of a unit the stream that the caller passes waits.

    Constraints:

    - `wait_c1`: the event exists, and is of another stream;
    - `wait_c2`: the stream `caller` waits only in handlers of `arrive` transitions and in the
      first handler of a unit, and a transition gives the gradient back once.

    Example:

    ```mlir
    zrt.wait @b0.reduced.done on compute
    zrt.wait @arrive.pack on caller
    ```
  }];
}

def Zrt_WaitWritableOp : Zrt_CallOp<"wait_writable"> {
  let summary = "Makes the compute stream wait until gradients may be written";
  let description = [{
    Waits for the `writable` events of the bucket of the arriving gradient.

    Example:

    ```mlir
    zrt.wait_writable
    ```
  }];
}

#endif // ZRT_SCHEDULE_OPS_TD
