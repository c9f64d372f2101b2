/* The packed model bundle, linked in as bytes. MODEL_FILE is its path, in quotes. */
    .section .rodata
    .balign 64
    .global autoscheduler_model
    .global autoscheduler_model_end
autoscheduler_model:
    .incbin MODEL_FILE
autoscheduler_model_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
