//===- Groups.cpp - How ranks of this program exchange data ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Groups.h"

#include "examples/transformer/Check.h"

#include <cstdio>
#include <random>

namespace transformer {

Groups::Groups(int64_t ranks, bool overTcp, const Launch *launch)
    : launch(launch), ends(size_t(ranks), nullptr) {
  if (launch)
    return;
  if (!overTcp) {
    check(zero_rt_local_group_create(int32_t(ranks), &ends[0]),
          "zero_rt_local_group_create", 0);
    return;
  }
  address.struct_size = sizeof(address);
  address.ranks = int32_t(ranks);
  std::snprintf(address.host, sizeof(address.host), "127.0.0.1");
  // So that no other process of this machine joins.
  std::random_device random;
  std::snprintf(address.secret, sizeof(address.secret), "%08x%08x%08x%08x",
                random(), random(), random(), random());
  check(zero_rt_tcp_listen(&address), "zero_rt_tcp_listen", 0);
}

Groups::~Groups() {
  if (isShared())
    check(zero_rt_group_destroy(ends[0]), "zero_rt_group_destroy", 0);
}

zero_rt_group *Groups::connect(int rank) {
  if (isShared())
    return ends[0];
  if (launch)
    return ends[size_t(rank)] = launch->connect();
  zero_rt_tcp_options mine = address;
  mine.rank = rank;
  if (rank != 0)
    mine.listener = 0; // that of rank 0
  check(zero_rt_tcp_group_create(&mine, &ends[size_t(rank)]),
        "zero_rt_tcp_group_create", rank);
  return ends[size_t(rank)];
}

void Groups::leave(int rank) {
  if (!isShared())
    check(zero_rt_group_destroy(ends[size_t(rank)]), "zero_rt_group_destroy",
          rank);
}

} // namespace transformer
