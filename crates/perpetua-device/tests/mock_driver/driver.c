// A CUDA driver without a device, for tests of the host's side. Streams do nothing until somebody waits for them or has long asked,
// so that whatever lacks an order comes in the wrong one; unloading code or freeing memory that submitted work uses ends the program.
//
// A kernel does nothing, but: a block of N lanes says that it has N parameters, of which the last two are the fault record and
// the site base; a grid of 7 blocks reports its first fault site; and one called `count` adds its lanes to its first buffer.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int R;
enum { OK = 0, INVALID = 1, ILLEGAL_STATE = 401, NOT_READY = 600, ISOLATION = 905 };
static pthread_mutex_t big;
static void lock(void) { pthread_mutex_lock(&big); }
static R done(R r) { pthread_mutex_unlock(&big); return r; }
static void fail(const char *what) { fprintf(stderr, "mock driver: %s\n", what); _exit(99); }

typedef struct Event { struct Stream *on; uint64_t at, want; } Event;
typedef struct { int loaded, counts; uint64_t pending; } Module;
typedef struct Op {
    enum { SET, COPY, KERNEL, RECORD, WAIT, CALL } kind;
    char *to; const char *from; char *owned; size_t len, unit; uint32_t value;
    Event *event; Module *module; void (*call)(void *); void *data; uint64_t number; uint32_t *record, site;
} Op;
typedef struct Graph { Op *ops; size_t n; } Graph;
typedef struct Stream { Op *ops; size_t n, at; Graph *capture; } Stream;
static Stream legacy;
static int loaded;
__attribute__((constructor)) static void start(void) {
    pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&big, &a);
}
static Stream *get(void *s) { return s ? s : &legacy; }
static void run_for(Event *e, uint64_t number);
static void run_to(Stream *s, size_t end) {
    while (s->at < end) {
        Op op = s->ops[s->at++];
        switch (op.kind) {
        case SET: if (op.unit == 1) memset(op.to, op.value, op.len);
            else if (op.unit == 4) for (size_t i = 0; i < op.len / 4; i++) ((uint32_t *)op.to)[i] = op.value;
            else for (size_t i = 0; i < op.len; i += op.unit) memcpy(op.to + i, &op.value, op.unit); break;
        case COPY: memcpy(op.to, op.from, op.len); break;
        case KERNEL:
            if (!op.module->loaded) fail("a kernel runs whose module was unloaded");
            op.module->pending--;
            if (op.to) *(uint32_t *)op.to += op.len;
            if (op.record && !op.record[0]) { op.record[0] = 1; op.record[1] = op.site; }
            break;
        case RECORD: if (op.event->at < op.number) op.event->at = op.number; break;
        case WAIT: run_for(op.event, op.number); break;
        case CALL: op.call(op.data); break;
        }
    }
}
// No further than the event: what comes behind it may wait for whoever waits here.
static void run_for(Event *e, uint64_t number) {
    while (e->at < number && e->on->at < e->on->n) run_to(e->on, e->on->at + 1);
}
// Whoever asks again and again is answered at some time.
static int asked(void) { static unsigned times; return ++times % 1000 == 0; }
static R push(void *handle, Op op) {
    Stream *s = get(handle);
    if (op.kind == KERNEL && !s->capture) op.module->pending++;
    if (s->capture) {
        if (op.kind == RECORD || op.kind == WAIT || op.kind == CALL) return ISOLATION;
        Graph *g = s->capture;
        g->ops = realloc(g->ops, (g->n + 1) * sizeof op); g->ops[g->n++] = op;
        return OK;
    }
    s->ops = realloc(s->ops, (s->n + 1) * sizeof op); s->ops[s->n++] = op;
    return OK;
}

int mock_loaded(void) { return loaded; }
R cuInit(unsigned f) { return OK; }
R cuDriverGetVersion(int *v) { *v = 12080; return OK; }
R cuDeviceGetCount(int *n) { *n = 1; return OK; }
R cuDeviceGet(int *d, int i) { *d = i; return OK; }
R cuDeviceGetName(char *n, int len, int d) { snprintf(n, len, "mock"); return OK; }
R cuDeviceTotalMem_v2(size_t *n, int d) { *n = 1ull << 32; return OK; }
R cuDeviceGetAttribute(int *v, int a, int d) {
    *v = 1 << 16;
    if (a == 75) *v = 9; if (a == 76) *v = 0;
    if (a == 1 || a == 2 || a == 3 || a == 4) *v = 1024;
    if (a == 10) *v = 32; if (a == 18) *v = 0;
    return OK;
}
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)8; return OK; }
R cuDevicePrimaryCtxRelease_v2(int d) { return OK; }
R cuCtxSetCurrent(void *c) { return OK; }
R cuCtxGetLimit(size_t *v, int l) { *v = 1 << 20; return OK; }
R cuCtxSetLimit(int l, size_t v) { return OK; }
R cuMemGetInfo_v2(size_t *f, size_t *t) { *f = *t = 1ull << 32; return OK; }
R cuMemAlloc_v2(uint64_t *p, size_t n) { void *m; if (posix_memalign(&m, 512, n)) return 2; memset(m, 0xcd, n); *p = (uint64_t)m; return OK; }
R cuMemFree_v2(uint64_t p) { free((void *)p); return OK; }
R cuMemHostAlloc(void **p, size_t n, unsigned f) { if (posix_memalign(p, 4096, n)) return 2; return OK; }
R cuMemFreeHost(void *p) { free(p); return OK; }
R cuMemHostGetDevicePointer_v2(uint64_t *d, void *p, unsigned f) { *d = (uint64_t)p; return OK; }
R cuStreamCreate(void **s, unsigned f) { *s = calloc(1, sizeof(Stream)); return OK; }
R cuStreamDestroy_v2(void *s) { lock(); run_to(s, ((Stream *)s)->n); return done(OK); }
R cuStreamSynchronize(void *h) { lock(); Stream *s = get(h); if (s->capture) fail("waiting for a stream that captures"); run_to(s, s->n); return done(OK); }
R cuStreamQuery(void *h) { lock(); Stream *s = get(h); if (asked()) run_to(s, s->n); return done(s->at == s->n ? OK : NOT_READY); }
R cuStreamWaitEvent(void *h, void *e, unsigned f) {
    lock(); Event *v = e; return done(push(h, (Op){.kind = WAIT, .event = v, .number = v->want}));
}
R cuEventCreate(void **e, unsigned f) { *e = calloc(1, sizeof(Event)); return OK; }
// The driver keeps what is pending: it is not freed.
R cuEventDestroy_v2(void *e) { return OK; }
R cuEventRecord(void *e, void *h) {
    lock(); Event *v = e; Stream *s = get(h);
    if (s->capture) fail("an event is recorded in a capture");
    v->on = s; v->want++;
    return done(push(h, (Op){.kind = RECORD, .event = v, .number = v->want}));
}
R cuEventQuery(void *e) { lock(); Event *v = e; if (v->at < v->want && asked()) run_for(v, v->want); return done(v->at == v->want ? OK : NOT_READY); }
R cuEventSynchronize(void *e) { lock(); Event *v = e; run_for(v, v->want); return done(OK); }
R cuEventElapsedTime_v2(float *t, void *a, void *b) { *t = 1; return OK; }
// Nobody waits for the driver who is told by a call: it comes at once.
R cuLaunchHostFunc(void *h, void (*f)(void *), void *d) {
    lock(); R r = push(h, (Op){.kind = CALL, .call = f, .data = d}); Stream *s = get(h);
    if (!r) run_to(s, s->n);
    return done(r);
}
static R set(uint64_t to, uint32_t v, size_t unit, size_t n, void *h) {
    lock(); return done(push(h, (Op){.kind = SET, .to = (char *)to, .value = v, .unit = unit, .len = n * unit}));
}
R cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, void *h) { return set(p, v, 1, n, h); }
R cuMemsetD16Async(uint64_t p, unsigned short v, size_t n, void *h) { return set(p, v, 2, n, h); }
R cuMemsetD32Async(uint64_t p, unsigned v, size_t n, void *h) { return set(p, v, 4, n, h); }
static R set_rows(uint64_t to, size_t pitch, uint32_t v, size_t unit, size_t n, size_t rows, void *h) {
    for (size_t i = 0; i < rows; i++) set(to + i * pitch, v, unit, n, h);
    return OK;
}
R cuMemsetD2D8Async(uint64_t p, size_t pitch, unsigned char v, size_t n, size_t rows, void *h) { return set_rows(p, pitch, v, 1, n, rows, h); }
R cuMemsetD2D32Async(uint64_t p, size_t pitch, unsigned v, size_t n, size_t rows, void *h) { return set_rows(p, pitch, v, 4, n, rows, h); }
R cuPointerGetAttribute(void *to, int which, uint64_t p) { *(int *)to = 0; return p && p < 1ull << 47 ? OK : INVALID; }
R cuStreamGetCtx(void *s, void **c) { *c = (void *)8; return OK; }
static R copy(void *to, const void *from, size_t n, void *h) {
    lock(); return done(push(h, (Op){.kind = COPY, .to = to, .from = from, .len = n}));
}
R cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *h) { return copy((void *)to, from, n, h); }
R cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *h) { return copy(to, (void *)from, n, h); }
R cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *h) { return copy((void *)to, (void *)from, n, h); }
R cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *h) { return copy((void *)to, (void *)from, n, h); }
R cuLinkCreate_v2(unsigned n, void *o, void *v, void **s) { *s = (void *)8; return OK; }
R cuLinkAddData_v2(void *s, int t, void *d, size_t n, const char *name, unsigned k, void *o, void *v) { return OK; }
R cuLinkComplete(void *s, void **image, size_t *n) { *image = "image"; *n = 5; return OK; }
R cuLinkDestroy(void *s) { return OK; }
R cuModuleLoadData(void **m, const void *image) { lock(); Module *n = calloc(1, sizeof *n); n->loaded = 1; loaded++; *m = n; return done(OK); }
R cuModuleLoadDataEx(void **m, const void *image, unsigned n, void *o, void *v) { return cuModuleLoadData(m, image); }
R cuModuleUnload(void *h) { lock(); Module *m = h; if (m->pending) fail("a module is unloaded whose kernel has not run"); m->loaded = 0; loaded--; return done(OK); }
R cuModuleGetFunction(void **f, void *m, const char *name) { ((Module *)m)->counts = !strcmp(name, "count"); *f = m; return OK; }
R cuModuleGetFunctionCount(unsigned *n, void *m) { *n = 1; return OK; }
R cuModuleEnumerateFunctions(void **f, unsigned n, void *m) { *f = m; return OK; }
R cuFuncGetName(const char **n, void *f) { *n = "kernel"; return OK; }
R cuFuncLoad(void *f) { return OK; }
R cuFuncGetAttribute(int *v, int a, void *f) { *v = a == 0 ? 1024 : 0; return OK; }
R cuFuncSetAttribute(void *f, int a, int v) { return OK; }
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int lanes, size_t bytes) { *n = (228 << 10) / (bytes + 1024); return OK; }
R cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *h, void **params, void **extra) {
    lock();
    Op op = {.kind = KERNEL, .module = f};
    if (gx == 7) { op.record = *(uint32_t **)params[bx - 2]; op.site = *(uint32_t *)params[bx - 1]; }
    if (((Module *)f)->counts) { op.to = *(char **)params[0]; op.len = gx * gy * gz * bx * by * bz; }
    return done(push(h, op));
}
R cuStreamBeginCapture_v2(void *h, int mode) { lock(); Stream *s = get(h); if (s->capture) return done(ILLEGAL_STATE); s->capture = calloc(1, sizeof(Graph)); return done(OK); }
R cuStreamEndCapture(void *h, void **g) { lock(); Stream *s = get(h); if (!s->capture) return done(ILLEGAL_STATE); *g = s->capture; s->capture = 0; return done(OK); }
R cuGraphGetNodes(void *g, void *nodes, size_t *n) { *n = ((Graph *)g)->n; return OK; }
R cuGraphInstantiateWithFlags(void **x, void *g, uint64_t f) { *x = g; return OK; }
R cuGraphDestroy(void *g) { return OK; }
R cuGraphExecDestroy(void *g) { return OK; }
R cuGraphLaunch(void *x, void *h) { lock(); Graph *g = x; for (size_t i = 0; i < g->n; i++) push(h, g->ops[i]); return done(OK); }
R cuGetErrorName(int c, const char **s) { *s = "CUDA_ERROR_OF_THE_MOCK"; return OK; }
R cuGetErrorString(int c, const char **s) { *s = "mock"; return OK; }
