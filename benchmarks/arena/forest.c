/* Trees of a random forest as scikit-learn grows them, one source for a GPU (a block a tree) and for a CPU.

   Level by level: every column's rows are gone through in the order of its values, with the sums of y on the left of a
   cut for every node; the cut with the most explained is taken. Squared error for a number, Gini for classes: with y as
   indicators both are the sum of squares between the two sides. Importances are what each column's cuts explain. */
#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define SHARED __shared__
#define WAIT __syncthreads()
#define START const int me = threadIdx.x, step = blockDim.x, tree = blockIdx.x
#define TREE
typedef unsigned char byte;
typedef unsigned short half_word;
typedef unsigned long long word;
#else
#include <stdint.h>
#define KERNEL
#define SHARED
#define WAIT
#define START const int me = 0, step = 1
#define TREE , int tree
#define __device__ static
typedef uint8_t byte;
typedef uint16_t half_word;
typedef uint64_t word;
#endif
#define NODES 16      /* at the last level that is cut: trees of depth 5 */
#define SIDES 4       /* columns of y at most */
#define ROWS 4096
#define LEAF 255
#define SAME 1e-7f    /* values closer than this are one, as in scikit-learn */
#define PURE 2.220446049250313e-16

__device__ word mixed(word x) { /* splitmix64: a random number for every tree, node and column */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* order, sorted, X: n x d, row by row; y: n x sides; counts: trees x n, how often a row was drawn; seeds: one a tree;
   gains, cuts: trees x NODES x d, to work in; importances: trees x d, set to 0. tried: columns a node looks at. */
KERNEL void grow(const half_word *order, const float *sorted, const float *X, const double *y, const byte *counts,
                 const word *seeds, double *gains, float *cuts, double *importances, int n, int d, int sides,
                 int tried, int depth TREE) {
    START;
    SHARED byte node[ROWS], drawn[ROWS];
    SHARED double total[NODES][SIDES + 2]; /* sums of y, of its squares, of rows */
    SHARED int cut_at[NODES];
    SHARED float cut[NODES];
    const byte *count = counts + (long)tree * n;
    double *gain = gains + (long)tree * NODES * d, *importance = importances + (long)tree * d;
    float *place = cuts + (long)tree * NODES * d;
    for (int i = me; i < n; i += step) {
        drawn[i] = count[i];
        node[i] = count[i] ? 0 : LEAF;
    }
    WAIT;
    for (int level = 0, width = 1; level < depth; level++, width *= 2) {
        for (int k = me; k < width; k += step) {
            for (int s = 0; s < SIDES + 2; s++) total[k][s] = 0;
            for (int i = 0; i < n; i++)
                if (node[i] == k) {
                    for (int s = 0; s < sides; s++) {
                        total[k][s] += drawn[i] * y[i * sides + s];
                        total[k][SIDES] += drawn[i] * y[i * sides + s] * y[i * sides + s];
                    }
                    total[k][SIDES + 1] += drawn[i];
                }
        }
        WAIT;
        for (int j = me; j < d; j += step) {
            double left[NODES][SIDES + 1], best[NODES];
            float last[NODES], at[NODES];
            for (int k = 0; k < width; k++) {
                for (int s = 0; s <= SIDES; s++) left[k][s] = 0;
                best[k] = -1; /* a column with one value in the node */
                at[k] = 0;
            }
            for (int i = 0; i < n; i++) {
                const int row = order[(long)i * d + j], k = node[row];
                if (k == LEAF) continue;
                const float value = sorted[(long)i * d + j];
                const double before = left[k][SIDES];
                if (before > 0 && value > last[k] + SAME) {
                    double here = 0;
                    for (int s = 0; s < sides; s++) {
                        const double right = total[k][s] - left[k][s];
                        here += left[k][s] * left[k][s] / before + right * right / (total[k][SIDES + 1] - before);
                    }
                    if (here > best[k]) {
                        best[k] = here;
                        at[k] = last[k];
                    }
                }
                last[k] = value;
                for (int s = 0; s < sides; s++) left[k][s] += drawn[row] * y[row * sides + s];
                left[k][SIDES] += drawn[row];
            }
            for (int k = 0; k < width; k++) {
                gain[(long)k * d + j] = best[k];
                place[(long)k * d + j] = at[k];
            }
        }
        WAIT;
        for (int k = me; k < width; k += step) {
            const word seed = mixed(seeds[tree] + NODES * level + k);
            double squares = 0;
            for (int s = 0; s < sides; s++) squares += total[k][s] * total[k][s];
            const double rows = total[k][SIDES + 1];
            cut_at[k] = -1;
            if (rows <= 0 || total[k][SIDES] / rows - squares / rows / rows <= PURE) continue;
            /* columns come in a random order, at least `tried` of them and until one has two values; ties to the first */
            word after = 0, next;
            double most = -1;
            for (int seen = 0; seen < d && (seen < tried || most < 0 || tried == d); seen++) {
                int j = 0;
                if (tried == d) { /* all of them: only ties need an order */
                    j = seen;
                    next = mixed(seed + j);
                    if (gain[(long)k * d + j] > most || (gain[(long)k * d + j] == most && next < after)) {
                        most = gain[(long)k * d + j];
                        cut_at[k] = most < 0 ? -1 : j;
                        after = next;
                    }
                    continue;
                }
                next = ~0ULL;
                for (int other = 0; other < d; other++) {
                    const word key = mixed(seed + other);
                    if (key > after && key <= next) {
                        next = key;
                        j = other;
                    }
                }
                after = next;
                if (gain[(long)k * d + j] > most) {
                    most = gain[(long)k * d + j];
                    cut_at[k] = j;
                }
            }
            if (cut_at[k] >= 0) cut[k] = place[(long)k * d + cut_at[k]];
        }
        WAIT;
        if (me == 0)
            for (int k = 0; k < width; k++)
                if (cut_at[k] >= 0) {
                    double before = 0;
                    for (int s = 0; s < sides; s++) before += total[k][s] * total[k][s] / total[k][SIDES + 1];
                    importance[cut_at[k]] += gain[(long)k * d + cut_at[k]] - before;
                }
        for (int i = me; i < n; i += step) {
            const int k = node[i];
            if (k != LEAF) node[i] = cut_at[k] < 0 ? LEAF : 2 * k + (X[(long)i * d + cut_at[k]] > cut[k]);
        }
        WAIT;
    }
}
