/* Priority: which queue of its port a packet waits in, so that tensors needed next go first.
 *
 * A packet with a ticket (the layer of its tensor and the training iteration, in IPv4 options) is
 * placed by the priority window of its job. The backward pass gives the last layers first, and the
 * next forward pass needs the first layers first: so the window slides down as tensors of lower
 * layers arrive, and the lowest layer so far in the iteration deserves the highest queue.
 *
 *     layer     lowest   + step   + 2 steps   ...        beyond the width
 *     queue     top      top - 1  top - 2     ...  0     0
 *
 * A window opens `lead` layers below the first tensor of its iteration: what will arrive next then
 * finds the high queues empty, rather than filled by the layers before it. A tensor of an iteration
 * before the window's takes its place in it and does not move it.
 *
 * What carries no ticket has the middle class. It cannot starve: for every `share` tensors that were
 * placed above it, on whatever port, each port places one such packet in the highest queue.
 *
 * Without entries in `scheduling` every packet has priority 0, the only queue of a switch that was
 * started with one. State of a window is one register cell and is read and written in one action:
 * bmv2 makes an action atomic and nothing larger.
 */
#ifndef BLUETREE_PRIORITY_P4
#define BLUETREE_PRIORITY_P4

/* Iterations that a tensor may lag behind. What seems older is of a job that began anew. */
const iteration_t LATE_ITERATIONS = 16;

control Priority(in headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    /* The window's iteration, and the complement of its lowest layer: 0 at first, which reads as
     * the highest layer there is.
     */
    register<bit<32>>(WINDOWS)   windows;
    /* Tensors placed above the middle class when a port last let a packet pass them; in the cell
     * behind the ports, so far.
     */
    register<bit<32>>(PORTS + 1) tensors_above;
    /* Packets by priority, copies not counted. */
    counter(QUEUES, CounterType.packets) queued;

    /* Plain traffic: the window of a flow, above JOBS where jobs have the others. */
    action use_window(window_t window) {
        meta.window = window;
    }

    table tensor_flows {
        key = {
            hdr.udp.src_port: ternary @name("src_port");
            hdr.udp.dst_port: ternary @name("dst_port");
        }
        actions = { use_window; @defaultonly NoAction; }
        const default_action = NoAction();
        size = TENSOR_FLOWS_SIZE;
    }

    /* top: the highest queue; middle: the class of other packets; width: layers in the window;
     * step: the logarithm of the layers that share a queue; lead: see above.
     */
    action slide(priority_t top, priority_t middle, layer_t width, bit<4> step, layer_t lead) {
        bit<32> stored;
        bit<32> above;
        windows.read(stored, (bit<32>)meta.window);
        tensors_above.read(above, PORTS);

        iteration_t current = stored[31:16];
        layer_t     lowest = ~stored[15:0];
        iteration_t ahead = meta.iteration - current;
        bool        begins = stored == 0 || (ahead != 0 && ahead <= 0 - LATE_ITERATIONS - 1);
        bool        late = !begins && ahead != 0;
        layer_t     opened = meta.layer |-| lead;
        lowest = begins ? opened : lowest;
        lowest = (!late && meta.layer < lowest) ? meta.layer : lowest;

        layer_t distance = meta.layer |-| lowest;
        layer_t below_top = distance >> step;
        bool    outside = distance >= width || below_top >= (layer_t)(bit<16>)top;
        standard_metadata.priority = outside ? 0 : top - (priority_t)below_top;

        windows.write((bit<32>)meta.window, (begins ? meta.iteration : current) ++ ~lowest);
        tensors_above.write(PORTS, above + (standard_metadata.priority > middle ? 32w1 : 0));
    }

    /* share: tensors above the middle class for which one other packet passes them, 0 for never. */
    action pass_middle(priority_t top, priority_t middle, bit<16> share) {
        bit<32> above;
        bit<32> before;
        tensors_above.read(above, PORTS);
        tensors_above.read(before, (bit<32>)standard_metadata.egress_spec);
        bool passes = share != 0 && above - before >= (bit<32>)share;
        priority_t own = middle < top ? middle : top;
        standard_metadata.priority = passes ? top : own;
        tensors_above.write((bit<32>)standard_metadata.egress_spec, passes ? above : before);
    }

    /* An entry for each of the two kinds of packet. */
    table scheduling {
        key = {
            meta.has_ticket: exact @name("has_ticket");
        }
        actions = { slide; pass_middle; @defaultonly NoAction; }
        const default_action = NoAction();
        size = SCHEDULING_SIZE;
    }

    apply {
        if (meta.has_ticket == 1) {
            if (hdr.agg.isValid()) {
                meta.window = hdr.agg.job;
            } else if (hdr.udp.isValid()) {
                tensor_flows.apply();
            }
            if (meta.window == 0 || meta.window >= WINDOWS) {
                meta.has_ticket = 0;
            }
        }
        if (scheduling.apply().hit) {
            queued.count((bit<32>)standard_metadata.priority);
        }
    }
}

#endif
