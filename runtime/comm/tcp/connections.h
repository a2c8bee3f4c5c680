//===- connections.h - Messages over TCP ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message is a frame on the one connection to its rank. A message that
// arrives before its receive is kept, so that no channel waits for another.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_CONNECTIONS_H
#define ZERO_RT_COMM_TCP_CONNECTIONS_H

#include "comm/tcp/socket.h"
#include "zero_rt/transport.h"

#include <deque>
#include <map>
#include <vector>

namespace zero_rt {

class Connections {
public:
  /// |sockets| are by rank; the entry of this rank is null. They stay with the
  /// caller if the constructor throws.
  /// The messages of one rank that nobody has received take at most
  /// |mostKeptBytes|, and so do copies of messages that it has not taken. The
  /// default is more than the slice of any bucket.
  Connections(int32_t rank, std::vector<Socket> &sockets,
              int64_t mostKeptBytes = int64_t(1) << 32);
  ~Connections();

  /// The transport with |connections| as its context, which `destroy` deletes.
  static zero_rt_transport makeTransport(Connections *connections);

private:
  struct Frame {
    int64_t bytes;
    int64_t channel;
  };
  struct Request {
    int32_t rank;
    int32_t channel;
    char *data; // where a received message goes; null for a send
    int64_t bytes;
    bool isDone = false;
    zero_rt_status status = ZERO_RT_OK;
  };
  struct Outgoing {
    Frame frame;
    const char *data;
    std::vector<char> copy; // of a short one
    size_t done = 0;        // bytes of both
    Request *request;       // null: no thread waits for it
  };
  struct Peer {
    Socket socket;
    bool isClosed = false;
    std::string mistake; // of this rank, for which the connection was closed
    int64_t earlyBytes = 0;
    int64_t copiedBytes = 0; // of the copies in |outgoing|
    std::deque<Outgoing> outgoing;
    std::map<int32_t, std::deque<Request *>> receives;
    std::map<int32_t, std::deque<std::vector<char>>> early;
    // The message that is being read: its frame, and then its contents, into a
    // request or a buffer.
    Frame frame = {};
    size_t done = 0;
    bool isInFrame = true;
    Request *target = nullptr;
    std::vector<char> buffer;
  };

  void progress();
  void close(Peer &peer, const std::string &why = {});
  void read(Peer &peer, bool isLast = false);
  bool readSome(Peer &peer, char *data, size_t bytes);
  void beginContents(Peer &peer);
  void endContents(Peer &peer);
  void write(Peer &peer);
  void begin(Request *request, const void *data);
  static void keepCopy(Outgoing &message);
  zero_rt_status test(Request *request, int32_t *outDone);
  void cancel(Request *request);

  int32_t rank;
  int64_t mostKeptBytes;
  std::vector<Peer> peers;
  uint64_t bytesSent = 0;
  std::string message;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_CONNECTIONS_H
