//===- Passes.td - Streams and events ----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_SCHEDULE_TD
#define ZERO_PASSES_SCHEDULE_TD

include "mlir/Pass/PassBase.td"

def SchedulePass : Pass<"zrt-schedule", "::mlir::ModuleOp"> {
  let summary = "Gives each call a stream, and waits for all that it must follow";
  let description = [{
    Collectives go to one stream, copies to the host, kernels on the host and copies
    back to one each, and the rest to the compute stream. Two calls on different
    streams are a hazard if they touch the same memory and one of them writes it.
    For each hazard, on every path of the protocol, the later call gets a wait for an
    event:

    - a call on a stream other than compute, or in the same handler, has an event of
      its own, recorded right behind the call;
    - for calls on the compute stream in earlier handlers, an event is recorded where
      the handler of the later call begins.

    A wait for an event that was not recorded on the path passes at once. So a handler
    has one list of waits, whatever path leads to the handler.

    The caller has a stream, too, which it passes to the call that runs a handler. The
    caller has written an arriving gradient, and writes it again when it gets it back. Until
    apply it has read parameters. Handlers that conflict with these accesses begin with a
    record of the stream `caller` and the waits for it. Handlers of arrivals end with the
    waits of the stream `caller`.

    The table of each bucket lists the events after which its gradients may be written
    and its parameters be read.

    *Requires:* a program without streams, as `zero-lower-to-zrt` leaves it.

    *Guarantees:* of two calls that touch the same memory, one follows the other.
    `zrt-elide-waits` removes the waits that others imply.
  }];
}

def ElideWaitsPass : Pass<"zrt-elide-waits", "::mlir::ModuleOp"> {
  let summary = "Removes waits that other waits imply";
  let description = [{
    A stream that waits for an event also follows everything that the stream of the
    event followed when the event was recorded. A wait is removed if, on every path of
    the protocol, its stream follows the event without it. Events for which nothing
    waits are removed with their records.

    *Guarantees:* each call follows the same calls as before.
  }];
}

#endif // ZERO_PASSES_SCHEDULE_TD
