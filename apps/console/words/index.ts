import { frame } from './frame/frame.ts'

/**
 * The texts of the frame and those that every page shares. The texts of an area are in its module beside this one
 * (`tPlan` in plan.ts). They load with its pages, so the first load contains none of them.
 */
export const t = frame
