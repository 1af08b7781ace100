import { frame } from './frame/frame.ts'

/**
 * The words of the frame and those that every page shares. The words of one area are in the module of that area beside
 * this one (`tPlan` in plan.ts), and so come with its pages: the first load carries none of them.
 */
export const t = frame
