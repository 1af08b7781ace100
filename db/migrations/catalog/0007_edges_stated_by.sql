ALTER TABLE "catalog"."relationship" ADD COLUMN "stated_by" text;--> statement-breakpoint
ALTER TABLE "catalog"."relationship_history" ADD COLUMN "stated_by" text;