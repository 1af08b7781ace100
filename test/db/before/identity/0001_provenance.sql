ALTER TABLE "identity"."group_members" ADD COLUMN "added_by" text;--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "reset_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "reset_by" text;