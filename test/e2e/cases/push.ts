import { expect, it } from 'vitest'
