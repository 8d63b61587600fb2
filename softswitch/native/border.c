/* --- the border to Python ------------------------------------------------------------------------------ */
/* Declared here, not by Python.h, which need not be installed; all is of the stable ABI. */

typedef struct _object PyObject;
typedef ssize_t Py_ssize_t;
typedef struct {
    const char *name;
    PyObject *(*call)(PyObject *, PyObject *const *, Py_ssize_t);
    int flags;
    const char *doc;
} PyMethodDef;
enum { METH_FASTCALL = 0x80 };

extern PyObject *PyExc_TypeError;
extern PyObject *PyList_New(Py_ssize_t);
extern int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
extern Py_ssize_t PyList_Size(PyObject *);
extern PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
extern PyObject *PyTuple_New(Py_ssize_t);
extern int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
extern PyObject *PyLong_FromUnsignedLong(unsigned long);
extern PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
extern unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);
extern void *PyLong_AsVoidPtr(PyObject *);
extern PyObject *PyLong_FromVoidPtr(void *);
extern PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
extern int PyBytes_AsStringAndSize(PyObject *, char **, Py_ssize_t *);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_SetString(PyObject *, const char *);
extern PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
extern void Py_DecRef(PyObject *);
extern void Py_IncRef(PyObject *);
extern PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
extern void *PyCapsule_GetPointer(PyObject *, const char *);
extern PyObject _Py_NoneStruct;

static PyObject *left(Switch *S) {
    PyObject *list = PyList_New(S->out_count);
    for (u32 i = 0; list && i < S->out_count; i++) {
        const Out *out = &S->outs[i];
        PyObject *pair = PyTuple_New(2);
        PyObject *port = PyLong_FromUnsignedLong(out->port);
        PyObject *data = PyBytes_FromStringAndSize((char *)S->buffer + out->at, out->length);
        if (!pair || !port || !data) {
            if (pair) Py_DecRef(pair);
            if (port) Py_DecRef(port);
            if (data) Py_DecRef(data);
            Py_DecRef(list);
            return NULL;
        }
        PyTuple_SetItem(pair, 0, port);
        PyTuple_SetItem(pair, 1, data);
        PyList_SetItem(list, i, pair);
    }
    return list;
}

static int packet(Switch *S, PyObject *port, PyObject *object, PyObject *now) {
    char *data;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(object, &data, &n) < 0) return -1;
    run(S, PyLong_AsUnsignedLongLongMask(port), (u8 *)data, (size_t)n,
        PyLong_AsUnsignedLongLongMask(now));
    return PyErr_Occurred() ? -1 : 0;
}

/* process(port, data, now) -> [(port, bytes), ...] */
static PyObject *call_process(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "process takes port, data, now");
        return NULL;
    }
    Switch *S = PyLong_AsVoidPtr(self);
    S->used = S->out_count = 0;
    return packet(S, args[0], args[1], args[2]) < 0 ? NULL : left(S);
}

/* batch(port, [data, ...], now) -> [(port, bytes), ...] */
static PyObject *call_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t frames = count == 3 ? PyList_Size(args[1]) : -1;
    if (frames < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "batch takes port, list, now");
        return NULL;
    }
    Switch *S = PyLong_AsVoidPtr(self);
    S->used = S->out_count = 0;
    for (Py_ssize_t i = 0; i < frames; i++)
        if (packet(S, args[0], PyList_GetItem(args[1], i), args[2]) < 0) return NULL;
    return left(S);
}

/* carry(ring, links, now) -> [(port, bytes), ...] that leave elsewhere */
static PyObject *call_carry(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "carry takes ring, links, now");
        return NULL;
    }
    Switch *S = PyLong_AsVoidPtr(self);
    Ring *ring = PyLong_AsVoidPtr(args[0]);
    Link *links = PyLong_AsVoidPtr(args[1]);
    u64 now = PyLong_AsUnsignedLongLongMask(args[2]);
    if (PyErr_Occurred()) return NULL;
    S->used = S->out_count = 0;
    take(S, ring, now);
    send_out(S, links);
    return left(S);
}

/* --- packets in two steps --- */

static const char HELD[] = "softswitch.held";

static void forget(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, HELD)); }

static PyObject *numbers(const u64 *values, int count, PyObject *last) {
    PyObject *tuple = last ? PyTuple_New(count + 1) : NULL;
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(values[i]);
        if (!number) {
            Py_DecRef(tuple);
            tuple = NULL;
        } else PyTuple_SetItem(tuple, i, number);
    }
    if (tuple) PyTuple_SetItem(tuple, count, last);
    else if (last) Py_DecRef(last);
    return tuple;
}

/* [(port, priority, length, came_by, passes, capsule), ...] */
static PyObject *held_packets(Switch *S) {
    PyObject *list = PyList_New(S->held_count);
    for (u32 i = 0; i < S->held_count; i++) {
        Held *held = S->held[i];
        const P *p = &held->packet;
        u64 values[] = {p->q, held->priority, p->n, p->port, held->passes};
        PyObject *capsule = list ? PyCapsule_New(held, HELD, forget) : NULL;
        if (!capsule) free(held);
        PyObject *tuple = numbers(values, 5, capsule);
        if (tuple) PyList_SetItem(list, i, tuple);
        else if (list) {
            Py_DecRef(list);
            list = NULL;
        }
    }
    S->held_count = 0;
    return list;
}

/* enqueue(port, data, now) -> copies, as held_packets gives them */
static PyObject *call_enqueue(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "enqueue takes port, data, now");
        return NULL;
    }
    Switch *S = PyLong_AsVoidPtr(self);
    S->used = S->out_count = S->held_count = 0;
    S->hold = 1;
    int failed = packet(S, args[0], args[1], args[2]);
    S->hold = 0;
    PyObject *list = held_packets(S);
    if (failed && list) Py_DecRef(list);
    return failed ? NULL : list;
}

/* dequeue(capsule, passes, now, since, enq_qdepth, deq_qdepth) -> (copies, frame or None) */
static PyObject *call_dequeue(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "dequeue takes capsule, passes, now, since, two depths");
        return NULL;
    }
    Switch *S = PyLong_AsVoidPtr(self);
    Held *held = PyCapsule_GetPointer(args[0], HELD);
    if (!held) return NULL;
    P copy = held->packet;
    S->passes = (u32)PyLong_AsUnsignedLongLongMask(args[1]);
    copy.now = S->now = PyLong_AsUnsignedLongLongMask(args[2]);
    S->since = PyLong_AsUnsignedLongLongMask(args[3]);
    S->enq_qdepth = PyLong_AsUnsignedLongLongMask(args[4]);
    S->deq_qdepth = PyLong_AsUnsignedLongLongMask(args[5]);
    if (PyErr_Occurred()) return NULL;
    S->used = S->out_count = S->held_count = 0;
    S->hold = S->waited = 1;
    egress(S, &copy);
    S->waited = 0;
    PyObject *frame = &_Py_NoneStruct;
    if (S->out_count)
        frame = PyBytes_FromStringAndSize((char *)S->buffer + S->outs[0].at, S->outs[0].length);
    else Py_IncRef(frame);
    pass_again(S);
    S->hold = 0;
    PyObject *list = held_packets(S), *pair = list && frame ? PyTuple_New(2) : NULL;
    if (!pair) {
        if (list) Py_DecRef(list);
        if (frame) Py_DecRef(frame);
        return NULL;
    }
    PyTuple_SetItem(pair, 0, list);
    PyTuple_SetItem(pair, 1, frame);
    return pair;
}

static PyMethodDef METHODS[] = {
    {"process", call_process, METH_FASTCALL, NULL},
    {"batch", call_batch, METH_FASTCALL, NULL},
    {"carry", call_carry, METH_FASTCALL, NULL},
    {"enqueue", call_enqueue, METH_FASTCALL, NULL},
    {"dequeue", call_dequeue, METH_FASTCALL, NULL},
};

/* Function `which` of METHODS, bound to a switch that must outlive it. */
EXPORT PyObject *sw_method(Switch *S, u32 which) {
    PyObject *self = PyLong_FromVoidPtr(S);
    PyObject *made = self ? PyCFunction_NewEx(&METHODS[which], self, NULL) : NULL;
    if (self) Py_DecRef(self);
    return made;
}
