/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The monitor as the host sees it: bytes to copy to PH__MONITOR_GPA of each VM. They start with a
 * struct ph__monitor_header (abi/monitor.h), which says where the parts are.
 */
#ifndef PH_MONITOR_BLOB_H
#define PH_MONITOR_BLOB_H

extern const unsigned char ph__monitor_blob[] __attribute__((visibility("hidden")));
extern const unsigned char ph__monitor_blob_end[] __attribute__((visibility("hidden")));

#endif
