/* Handlers of the instruction kinds, and what they have in common. */
#ifndef FORELOOP_SCHEDULE_WALK_INSTRUCTION_H
#define FORELOOP_SCHEDULE_WALK_INSTRUCTION_H

#include "schedule/walk_state.h"

enum { FORELOOP_WALK_MAX_ATTRIBUTES = 4, FORELOOP_WALK_LISTED = 6 };

/* Updates the state and emits the action, if any. Fails only for want of memory. */
typedef foreloop_status foreloop_walk_handler(foreloop_walk *walk, const foreloop_instruction *instruction,
                                              const foreloop_kind_info *info);

struct foreloop_kind_info {
    const char *name; /* in the trace */
    size_t length;
    const char *action; /* NULL: emits none */
    foreloop_walk_handler *handle;
    /* By place in the trace's attributes: "#name" becomes a number argument, "$name" a text, NULL nothing. */
    const char *attributes[FORELOOP_WALK_MAX_ATTRIBUTES];
};

foreloop_walk_handler foreloop_on_get_block;
foreloop_walk_handler foreloop_on_get_loops;
foreloop_walk_handler foreloop_on_get_blocks;
foreloop_walk_handler foreloop_on_get_producers;
foreloop_walk_handler foreloop_on_get_consumers;
foreloop_walk_handler foreloop_on_sample_tile;
foreloop_walk_handler foreloop_on_sample_categorical;
foreloop_walk_handler foreloop_on_sample_location;
foreloop_walk_handler foreloop_on_split;
foreloop_walk_handler foreloop_on_annotate;
foreloop_walk_handler foreloop_on_unannotate;
foreloop_walk_handler foreloop_on_reorder;
foreloop_walk_handler foreloop_on_fuse;
foreloop_walk_handler foreloop_on_merge;
foreloop_walk_handler foreloop_on_partition;
foreloop_walk_handler foreloop_on_add_unit_loop;
foreloop_walk_handler foreloop_on_loop;
foreloop_walk_handler foreloop_on_bind;
foreloop_walk_handler foreloop_on_cache;
foreloop_walk_handler foreloop_on_access_at;
foreloop_walk_handler foreloop_on_compute_at;
foreloop_walk_handler foreloop_on_block;
foreloop_walk_handler foreloop_on_rfactor;
foreloop_walk_handler foreloop_on_decompose;
foreloop_walk_handler foreloop_on_pad_einsum;
foreloop_walk_handler foreloop_on_hide_buffer_access;
foreloop_walk_handler foreloop_on_subtree;
foreloop_walk_handler foreloop_on_set_axis_separator;
foreloop_walk_handler foreloop_on_reorder_block_iter_var;
foreloop_walk_handler foreloop_on_annotate_buffer_access;
/* Of Ansor's steps, see ansor_steps.c: look-ups of a stage and of its axes; splits; compute_at. */
foreloop_walk_handler foreloop_on_stage;
foreloop_walk_handler foreloop_on_axes;
foreloop_walk_handler foreloop_on_split_extent;
foreloop_walk_handler foreloop_on_place;

/* The text of a quoted string; NULL when the value is none. */
foreloop_status foreloop_walk_quoted(foreloop_walk *walk, const foreloop_value *value, const char **text);

/* What a value names: a zero binding when it is no known variable. */
foreloop_binding foreloop_walk_variable(const foreloop_walk *walk, const foreloop_value *value);
/* The block or loop that an input names, or NONE. */
size_t foreloop_walk_input_block(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index);
size_t foreloop_walk_input_loop(const foreloop_walk *walk, const foreloop_instruction *instruction, size_t index);
/* A finite number, written out or sampled; false when unknown. */
bool foreloop_walk_input_number(const foreloop_walk *walk, const foreloop_value *value, double *number);

void foreloop_walk_bind_output(foreloop_walk *walk, const foreloop_instruction *instruction, size_t index,
                               foreloop_binding binding);
/* Binds the outputs from `first_output` on to new loops of `block`; the first one's index goes to *first_loop. */
foreloop_status foreloop_walk_bind_loops(foreloop_walk *walk, const foreloop_instruction *instruction, size_t block,
                                         size_t first_output, size_t *first_loop);
/* Binds all outputs to new blocks. */
foreloop_status foreloop_walk_bind_blocks(foreloop_walk *walk, const foreloop_instruction *instruction,
                                          foreloop_block_origin origin, size_t base);

/* Arguments: the attributes that `info` names; the first numbers of an array; extent and class of a loop. */
void foreloop_walk_add_attributes(foreloop_walk *walk, const foreloop_instruction *instruction,
                                  const foreloop_kind_info *info);
void foreloop_walk_add_listed(foreloop_walk *walk, const foreloop_value *array, const char *const *names);
void foreloop_walk_add_loop(foreloop_walk *walk, size_t loop);

#endif
