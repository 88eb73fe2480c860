/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Compiles the host's public headers as C11: it is built, and that is the test.
 */
#include <pinhole/export.h>
#include <pinhole/metrics.h>
#include <pinhole/otlp.h>
#include <pinhole/pinhole.h>
#include <pinhole/pool.h>
#include <pinhole/snapshot.h>
#include <pinhole/types.h>

const ph_config headers_config = PH_CONFIG_INIT;
const ph_pool_config headers_pool_config = PH_POOL_CONFIG_INIT;
const ph_pool_stats headers_pool_stats = PH_POOL_STATS_INIT;
const ph_snapshot_info headers_snapshot_info = PH_SNAPSHOT_INFO_INIT;
