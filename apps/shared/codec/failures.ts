import { DefaultFailureConverter } from '@temporalio/common'

/**
 * Loaded by its path in `dataConverterOf`: messages and stacks of failures go through the codec like everything else.
 */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
