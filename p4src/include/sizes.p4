/* Every size of the program. A size with an #ifndef is chosen when compiling: -DLANES=64.
 *
 * The generated build/bluetree.constants.json carries them to the control plane, so that no number
 * is typed twice.
 */
#ifndef BLUETREE_SIZES_P4
#define BLUETREE_SIZES_P4

/* int32 values in a message. */
#ifndef LANES
#define LANES 32
#endif

/* Fields that the lanes of a message are divided into, 1 to 4: p4c takes integers up to 2048 bits, so
 * more than 64 lanes need more than one, as in -DLANES=240 -DWORDS=4.
 */
#ifndef WORDS
#define WORDS 1
#endif

/* Sources (workers and blue children) that one blue switch can sum for one job. */
#ifndef SOURCES
#define SOURCES 2048
#endif

/* Chunks in flight that a switch can hold, over all jobs. */
#ifndef SLOTS
#define SLOTS 4096
#endif

/* Reduces that a switch can carry at the same time. */
#ifndef JOBS
#define JOBS 1024
#endif

/* Strict-priority queues of a port: bmv2's most. */
#define QUEUES 8

/* Priority windows: number j is that of job j, those above JOBS are left to plain traffic. */
#define WINDOWS 2048

/* Cells by port number, which has 9 bits. */
const int PORTS           = 512;
const int LANE_BITS       = 32;
const int WORD_BITS       = LANES / WORDS * LANE_BITS;
const int LANES_BYTES     = LANES * 4;
const int UDP_BYTES       = 8;
const int AGG_BYTES       = 20;
const int MAX_OPTION_BITS = 320;

/* Entries of each table. */
const int REGISTERED_SOURCES_SIZE = 8 * JOBS;
const int BLUE_SOURCES_SIZE       = 16 * JOBS;
const int UPSTREAM_SIZE           = 4 * JOBS;
const int BLUE_JOBS_SIZE          = 2 * JOBS;
const int BRANCHES_SIZE           = 16 * JOBS;
const int DOWNSTREAM_SIZE         = JOBS;
const int HOSTS_SIZE              = 8 * JOBS;
const int IPV4_ROUTES_SIZE        = 16384;
const int TENSOR_FLOWS_SIZE       = JOBS;
const int SCHEDULING_SIZE         = 2;

#endif
