import { DefaultFailureConverter } from '@temporalio/common'

/** Loaded by its path in `dataConverterOf`: messages and stacks of failures pass through the codec like all else. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
